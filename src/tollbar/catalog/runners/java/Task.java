import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;

/** Task: its settings, each read or refused, its inputs, and the data made from its seed. */
final class Task {
    private static final int MOST_BYTES = 1 << 28;

    final String mode;
    final String family;
    final String op;
    final String choice;
    /** Which code is to perform: `jdk` or `bouncy-castle`. */
    final String packageName;
    private final long seed;
    private final JsonObject inputs;
    private final JsonObject setting;
    /** What nothing has read yet. */
    private final Set<String> left;

    Task(JsonObject said) {
        mode = said.getString("mode", "");
        family = said.getString("family", "");
        op = said.getString("op", "");
        choice = said.getString("choice", "");
        packageName = object(said, "provider").getString("package", "jdk");
        // Seeds go to 2^64.
        seed = said.get("seed") == null ? 0 : Long.parseUnsignedLong(said.get("seed").toString());
        inputs = object(said, "inputs");
        setting = object(said, "setting");
        left = new TreeSet<>(setting.names());
    }

    private static JsonObject object(JsonObject said, String name) {
        JsonValue value = said.get(name);
        return value == null ? new JsonObject() : value.asObject();
    }

    boolean isNull() {
        return choice.equals("none");
    }

    /** Reads a setting that must be one of these words; the first is the default. */
    String word(String name, String... words) throws Refusal {
        left.remove(name);
        JsonValue value = setting.get(name);
        if (value == null) {
            return words[0];
        }
        if (!value.isString() || !Arrays.asList(words).contains(value.asString())) {
            throw Refusal.failed("the setting " + name + " must be " + String.join(" or ", words) + ", and is " + value);
        }
        return value.asString();
    }

    /** Reads the setting `bytes`: the length of the message. */
    int bytes(int missing) throws Refusal {
        return number("bytes", missing);
    }

    /** Reads a setting that must be a whole number. */
    int number(String name, int missing) throws Refusal {
        left.remove(name);
        JsonValue value = setting.get(name);
        try {
            int bytes = value == null ? missing : value.asInt();
            if (bytes >= 0 && bytes <= MOST_BYTES) {
                return bytes;
            }
        } catch (NumberFormatException | UnsupportedOperationException error) {
            // Not a whole number, or none that an int holds: told below.
        }
        throw Refusal.failed("the setting " + name + " must be a whole number up to " + MOST_BYTES + ", and is " + value);
    }

    /** Processor features are the JVM's to use: it decides before any of this program runs. */
    void processor() throws Refusal {
        if (!word("cpu", "native", "no-sha", "no-aes", "no-vector").equals("native")) {
            throw Refusal.unsupported("a running JVM cannot switch processor features off");
        }
    }

    void allSettingsRead() throws Refusal {
        if (!left.isEmpty()) {
            String what = op + " of " + choice + " (" + family + ")";
            throw Refusal.failed("settings that " + what + " does not read: " + String.join(", ", left));
        }
    }

    /** Returns an input as text, or null. */
    String input(String name) {
        return inputs.getString(name, null);
    }

    /** Returns an input in hexadecimal, or null. */
    byte[] hex(String name) {
        String text = input(name + "_hex");
        return text == null ? null : Hex.bytes(text);
    }

    /** Returns the message of the known answer, or null. */
    byte[] known() {
        String text = input("of");
        return text == null ? hex("of") : text.getBytes(StandardCharsets.UTF_8);
    }

    /** Returns pseudo-random bytes that depend only on the seed and the salt (SplitMix64, as in the engine). */
    byte[] filled(int bytes, long salt) {
        ByteBuffer words = ByteBuffer.allocate((bytes + 7) / 8 * 8).order(ByteOrder.LITTLE_ENDIAN);
        for (long state = seed ^ salt; words.hasRemaining(); ) {
            state += 0x9e3779b97f4a7c15L;
            long z = (state ^ state >>> 30) * 0xbf58476d1ce4e5b9L;
            z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
            words.putLong(z ^ z >>> 31);
        }
        return Arrays.copyOf(words.array(), bytes);
    }

    /** Returns a copy with one bit of this byte flipped, counted from the end if negative; one zero byte for empty data. */
    static byte[] tampered(byte[] data, int index) {
        byte[] other = Arrays.copyOf(data, Math.max(data.length, 1));
        other[index < 0 ? other.length + index : index] ^= 1;
        return data.length == 0 ? new byte[1] : other;
    }
}
