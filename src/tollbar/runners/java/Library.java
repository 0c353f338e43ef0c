import com.eclipsesource.json.JsonObject;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
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
                throw Refusal.unsupported("there is no package " + packageName + ": " + PACKAGES);
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
        RSAPublicKey made = (RSAPublicKey) keyPairs("RSA").generateKeyPair().getPublic();
        JsonObject sign = new JsonObject().add("choice", "rsa").add("bits", made.getModulus().bitLength());
        return new JsonObject().add("sign", sign);
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
