import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/** Supported operations and choices, by family. */
final class Families {
    private interface Prepare {
        Operation from(Task task, Library library) throws Exception;
    }

    private static final class Family {
        final List<String> ops;
        final List<String> choices;
        final Prepare prepare;

        Family(List<String> ops, List<String> choices, Prepare prepare) {
            this.ops = ops;
            this.choices = choices;
            this.prepare = prepare;
        }
    }

    private static final Map<String, Family> FAMILIES = new LinkedHashMap<>();

    static {
        List<String> signing = List.of("sign", "verify");
        FAMILIES.put("rsa-api", new Family(signing, RsaKeys.CHOICES, Signing::rsa));
        FAMILIES.put("signature", new Family(signing, List.of("ecdsa-p256"), Signing::ecdsa));
        FAMILIES.put("digest", new Family(List.of("hash"), Hashing.CHOICES, Hashing::new));
        FAMILIES.put("cipher", new Family(Encrypting.OPERATIONS, Encrypting.CHOICES, Encrypting::new));
        FAMILIES.put("defaults", new Family(List.of("sign"), List.of("by-default", "rsa"), Signing::byDefault));
    }

    private Families() {}

    static void offers(BiConsumer<String, String> offer) {
        FAMILIES.forEach((name, family) -> {
            offer.accept(name, "none");
            family.choices.forEach(choice -> offer.accept(name, choice));
        });
    }

    /** Returns the operation of a task. The null choice reads the same settings as the others, and does nothing. */
    static Operation prepare(Task task, Library library) throws Exception {
        Family family = FAMILIES.get(task.family);
        if (family == null) {
            throw Refusal.unsupported("this runner does not support the family " + task.family);
        }
        if (!family.ops.contains(task.op)) {
            throw Refusal.unsupported("this runner does not support " + task.op + " (" + task.family + "): " + family.ops);
        }
        if (!task.isNull() && !family.choices.contains(task.choice)) {
            throw Refusal.unsupported("this runner does not support " + task.choice + " (" + task.family + "): " + family.choices);
        }
        Operation operation = family.prepare.from(task, library);
        return task.isNull() ? Operation.NOTHING : operation;
    }
}
