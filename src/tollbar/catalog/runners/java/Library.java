import com.eclipsesource.json.JsonObject;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.Security;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.util.List;
import java.util.StringJoiner;
import javax.crypto.Cipher;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * A package that performs: where its algorithms are looked up, as programs that use it do: Java's own by the algorithm's
 * name alone, through the list of providers, and Bouncy Castle's by the provider's name too.
 */
final class Library {
    static final List<String> PACKAGES = List.of("jdk", "bouncy-castle");
    /** The providers of Java's own that have a part in what this runner does. */
    private static final List<String> JAVAS_OWN = List.of("SUN", "SunRsaSign", "SunEC", "SunJCE");

    /** Null for Java's own. */
    private final Provider provider;

    private Library(Provider provider) {
        this.provider = provider;
    }

    static Library of(String packageName) throws Refusal {
        switch (packageName) {
            case "jdk":
                return new Library(null);
            case "bouncy-castle":
                // At the end of the list, and only if none of its name is there.
                Security.addProvider(new BouncyCastleProvider());
                return new Library(Security.getProvider(BouncyCastleProvider.PROVIDER_NAME));
            default:
                throw Refusal.unsupported("the package must be one of " + PACKAGES + ", and is " + packageName);
        }
    }

    Signature signature(String name) throws GeneralSecurityException {
        return provider == null ? Signature.getInstance(name) : Signature.getInstance(name, provider.getName());
    }

    KeyFactory keyFactory(String name) throws GeneralSecurityException {
        return provider == null ? KeyFactory.getInstance(name) : KeyFactory.getInstance(name, provider.getName());
    }

    KeyPairGenerator keyPairs(String name) throws GeneralSecurityException {
        return provider == null
                ? KeyPairGenerator.getInstance(name)
                : KeyPairGenerator.getInstance(name, provider.getName());
    }

    KeyStore keyStore() throws GeneralSecurityException {
        return provider == null ? KeyStore.getInstance("PKCS12") : KeyStore.getInstance("PKCS12", provider.getName());
    }

    MessageDigest digest(String name) throws GeneralSecurityException {
        return provider == null
                ? MessageDigest.getInstance(name)
                : MessageDigest.getInstance(name, provider.getName());
    }

    Cipher cipher(String name) throws GeneralSecurityException {
        return provider == null ? Cipher.getInstance(name) : Cipher.getInstance(name, provider.getName());
    }

    /** Whether a Cipher that is given the key that it had has its schedule still; a message's IV comes with the key. */
    boolean keepsKeys() {
        return provider == null;
    }

    /** The size of a key whose caller says none, by operation, as `list` says it. */
    JsonObject defaults() throws GeneralSecurityException {
        JsonObject sign = new JsonObject().add("choice", "rsa").add("bits", defaultBits());
        return new JsonObject().add("sign", sign);
    }

    /**
     * Nothing says it but a key that was made, which takes seconds. It is kept beside the classes, for this JVM, the
     * provider that makes keys, and what it was told of sizes.
     */
    private int defaultBits() throws GeneralSecurityException {
        KeyPairGenerator generator = keyPairs("RSA");
        String folder = System.getProperty("jna.tmpdir");
        if (folder == null) {
            return bitsOf(generator);
        }
        String told = System.getProperty("jdk.security.defaultKeySize", "default");
        String runtime = System.getProperty("java.runtime.version");
        String of = String.join(" ", runtime, generator.getProvider().toString(), told);
        Path kept = Path.of(folder, "bits-" + of.replaceAll("[^A-Za-z0-9.-]", "_"));
        try {
            return Integer.parseInt(Files.readString(kept).trim());
        } catch (IOException | NumberFormatException none) {
            int bits = bitsOf(generator);
            keep(kept, bits);
            return bits;
        }
    }

    private static int bitsOf(KeyPairGenerator generator) {
        return ((RSAPublicKey) generator.generateKeyPair().getPublic()).getModulus().bitLength();
    }

    /** Whole or not at all, since others may read it; where nothing may be written, the next one makes a key again. */
    private static void keep(Path kept, int bits) {
        try {
            Path whole = Files.createTempFile(kept.getParent(), "bits", null);
            try {
                Files.writeString(whole, Integer.toString(bits));
                Files.move(whole, kept, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(whole);
            }
        } catch (IOException unwritable) {
            return;
        }
    }

    JsonObject receipt() {
        String java = System.getProperty("java.version");
        String runtime = System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version");
        String title = provider == null ? "JDK " + java : "Bouncy Castle " + provider.getVersionStr();
        JsonObject parts = new JsonObject();
        parts.add("backend", provider == null ? String.join(", ", JAVAS_OWN) : provider.getInfo());
        // What a JVM replaces by the processor's own instructions are methods of the JDK alone.
        parts.add("implementation", provider == null ? "managed code, with the JVM's intrinsics" : "managed code");
        parts.add("runtime", runtime);
        parts.add("flags", String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments()));
        StringJoiner collectors = new StringJoiner(", ");
        for (GarbageCollectorMXBean one : ManagementFactory.getGarbageCollectorMXBeans()) {
            collectors.add(one.getName());
        }
        parts.add("collectors", collectors.toString());
        return new JsonObject()
                .add("provider", title + " on " + runtime)
                .add("name", provider == null ? "jdk " + java : "bouncy-castle " + provider.getVersionStr())
                .add("parts", parts);
    }
}
