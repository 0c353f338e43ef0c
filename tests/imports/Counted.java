import java.security.InvalidKeyException;
import java.security.Key;
import java.security.KeyFactory;
import java.security.KeyFactorySpi;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.PublicKey;
import java.security.Security;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.KeySpec;
import java.util.concurrent.atomic.AtomicLong;

/** Runs the Java runner behind a provider that counts the keys that KeyFactory imports; says so on standard error. */
public final class Counted extends Provider {
    private static final long serialVersionUID = 1;
    private static final AtomicLong IMPORTS = new AtomicLong();

    private Counted() throws NoSuchAlgorithmException {
        super("Counted", "1", "counts imports");
        for (String name : new String[] {"RSA", "EC"}) {
            KeyFactory real = KeyFactory.getInstance(name);
            putService(new Service(this, "KeyFactory", name, Counting.class.getName(), null, null) {
                @Override
                public Object newInstance(Object parameter) {
                    return new Counting(real);
                }
            });
        }
    }

    public static void main(String[] arguments) throws Exception {
        Security.insertProviderAt(new Counted(), 1);
        Runner.main(arguments);
        System.err.println("{\"imports\": " + IMPORTS + "}");
    }

    private static final class Counting extends KeyFactorySpi {
        private final KeyFactory real;

        Counting(KeyFactory real) {
            this.real = real;
        }

        @Override
        protected PublicKey engineGeneratePublic(KeySpec spec) throws InvalidKeySpecException {
            IMPORTS.incrementAndGet();
            return real.generatePublic(spec);
        }

        @Override
        protected PrivateKey engineGeneratePrivate(KeySpec spec) throws InvalidKeySpecException {
            IMPORTS.incrementAndGet();
            return real.generatePrivate(spec);
        }

        @Override
        protected <T extends KeySpec> T engineGetKeySpec(Key key, Class<T> spec) throws InvalidKeySpecException {
            return real.getKeySpec(key, spec);
        }

        @Override
        protected Key engineTranslateKey(Key key) throws InvalidKeyException {
            return real.translateKey(key);
        }
    }
}
