import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import com.eclipsesource.json.ParseException;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Tollbar's runner for Java: what signing, hashing and encrypting cost through the JDK's providers and Bouncy Castle's, by
 * the runner contract (docs/runners.md), version 2.
 */
public final class Runner {
    private static final int CONTRACT = 2;
    private static final double MOST_SECONDS = 3600;
    private static final BufferedReader IN =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    /** As many as the JVM's first compiler waits for, several times over. */
    private static final int WARM_LINES = 2000;

    private Runner() {}

    public static void main(String[] arguments) throws IOException {
        JsonObject last;
        Library library = null;
        try {
            Task task = task();
            library = Library.of(task.packageName);
            last = perform(task, library).add("outcome", "ok");
        } catch (Exception error) {
            // What a provider refuses is an answer in its own words; the lab shows it as the row's reason.
            boolean isRefusal = error instanceof Refusal;
            String reason = isRefusal ? error.getMessage() : error.toString();
            last = new JsonObject().add("outcome", isRefusal ? ((Refusal) error).outcome : "failed");
            last.add("reason", reason);
            if (library != null) {
                last.add("receipt", library.receipt());
            }
        }
        say(last);
    }

    private static Task task() throws Refusal, IOException {
        JsonValue line = hear();
        if (line == null) {
            throw Refusal.failed("the task is missing: standard input is empty");
        }
        JsonValue contract = line.asObject().get("contract");
        if (contract == null || !contract.toString().equals(String.valueOf(CONTRACT))) {
            throw Refusal.failed("the task has contract " + contract + ", and this runner supports contract " + CONTRACT);
        }
        return new Task(line.asObject());
    }

    private static JsonObject perform(Task task, Library library) throws Exception {
        if (task.mode.equals("list")) {
            JsonArray offers = new JsonArray();
            Families.offers((family, choice) ->
                    offers.add(new JsonObject().add("family", family).add("choice", choice)));
            JsonObject receipt = library.receipt().add("defaults", library.defaults());
            return new JsonObject().add("receipt", receipt).add("offers", offers);
        }
        Operation operation = Families.prepare(task, library);
        task.allSettingsRead();
        switch (task.mode) {
            case "verify":
                return verify(task, operation).add("receipt", library.receipt());
            case "measure":
                measure(operation, library);
                return new JsonObject();
            default:
                throw Refusal.failed("the mode must be list, verify or measure, and is " + task.mode);
        }
    }

    private static JsonObject verify(Task task, Operation operation) throws Exception {
        operation.perform();
        Proof proof = operation.prove();
        if (task.input("expected_hex") != null && !proof.isAnswered()) {
            throw Refusal.failed("the known answer was not tested, because inputs are missing");
        }
        return new JsonObject().add("proof", proof.json());
    }

    private static void measure(Operation operation, Library library) throws Exception {
        warmLines();
        Chunks chunks = new Chunks(operation);
        JsonObject receipt = library.receipt();
        receipt.get("parts").asObject().add("warm-up", chunks.warmUpTime());
        say(new JsonObject().add("ready", receipt.add("operation_ns", chunks.eachNs())));
        for (JsonValue line; (line = hear()) != null; ) {
            JsonValue advance = line.isObject() ? line.asObject().get("advance") : null;
            if (advance == null || !advance.isObject()) {
                throw Refusal.failed("the line is not of the runner contract: " + line);
            }
            double seconds = advance.asObject().getDouble("seconds", 0);
            long operations = advance.asObject().getLong("operations", 0);
            if (!(seconds >= 0 && seconds <= MOST_SECONDS) || operations < 0 || seconds == 0 && operations == 0) {
                throw Refusal.failed("cannot advance " + seconds + " seconds and " + operations + " operations");
            }
            say(chunks.advance(seconds * 1e9, operations));
        }
    }

    /** The next line; null at the end of the input. Sleeps until there is one. */
    private static JsonValue hear() throws Refusal, IOException {
        String line = IN.readLine();
        try {
            return line == null ? null : Json.parse(line);
        } catch (ParseException error) {
            throw Refusal.failed("the line is not of the runner contract: " + error.getMessage());
        }
    }

    private static void say(JsonObject line) throws IOException {
        OUT.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Reads and writes lines as a session does, until the compilers have done with that code: while chunks are measured
     * they are to have nothing left to compile but what is measured.
     */
    private static void warmLines() {
        long length = 0;
        for (int done = 0; done < WARM_LINES; done++) {
            JsonObject advance = Json.parse("{\"advance\": {\"seconds\": 0.005, \"operations\": 1}}").asObject();
            long operations = advance.get("advance").asObject().getLong("operations", 0);
            double seconds = advance.get("advance").asObject().getDouble("seconds", 0);
            length += Chunks.line(operations + done, (long) (seconds * 1e9) + done, done, done).toString().length();
        }
        if (length == 0) {
            throw new IllegalStateException("lines without a character");
        }
    }
}
