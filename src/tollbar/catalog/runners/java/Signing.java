import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PSSParameterSpec;
import java.security.spec.RSAKeyGenParameterSpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/** `sign` and `verify`, for RSA by all its routes and for ECDSA. */
final class Signing implements Operation {
    /** Number of keys: one for each worker of a server. */
    private static final int POOL = 8;
    /** Of 2048 bits, its factors thrown away: a pair may take seconds to make, and this is only to refuse. */
    private static final BigInteger ANOTHER_MODULUS = new BigInteger(
            "9f06c3898dd18e8735459bee27fb65d2b493da7c688e1bab29e867c5db34c1d813917fc6a7eb268a9e9468"
            + "08f4d546c843c0f6f7337be19067135235e0da99573c1210aa5a90f56678d87cb20aa02c56a2b04199522f"
            + "5e1ca8d93bc5f76dc0abc8c2357b46c8eb15ab7d891ed14f8ee32fb0856fabf28ff460a9e038701e2add85"
            + "8569ec13bdab09d6218d3842ef48f02701941fa2f999533222f8be5d8a90ffa9eda2f72075f3a119d9f578"
            + "4efc3a4cb3c080de3582831667ac8f4a04826aaa4d5eef0430508c58853710928569d0be7abbf562ba9eb3"
            + "9cc47170bebe177660da54c0a37142fdab943f7269d45e588e45b8f9d18636aba1592878c0864eb0d5",
            16);
    /** What the settings call the hashes of an ECDSA signature, and what Java calls the signature. */
    private static final Map<String, String> ECDSA = Map.of(
            "sha-256", "SHA256withECDSA", "sha-384", "SHA384withECDSA", "sha-512", "SHA512withECDSA");

    /** One signature made, and one verified, by the route that is timed. */
    private interface Route {
        byte[] sign(byte[] message) throws Exception;

        boolean verify(byte[] message, byte[] signature) throws Exception;
    }

    private final Task task;
    private final Library library;
    private final String algorithm;
    private final KeyPair pair;
    private final Route route;
    private final byte[] message;
    /** What is verified; null where signing is the operation. */
    private final byte[] signature;

    private Signing(Task task, Library library, String algorithm, KeyPair pair, Route route, int bytes) throws Exception {
        this.task = task;
        this.library = library;
        this.algorithm = algorithm;
        this.pair = pair;
        this.route = route;
        message = task.filled(bytes, 0);
        signature = task.op.equals("verify") ? route.sign(message) : null;
    }

    static Operation rsa(Task task, Library library) throws Exception {
        int bytes = task.bytes(60);
        boolean isKept = task.word("digest", "fetched", "implicit").equals("fetched");
        if (task.isNull()) {
            return NOTHING;
        }
        String pem = task.input("private_key_pem");
        if (pem == null) {
            throw Refusal.failed("the input private_key_pem is missing");
        }
        RSAPrivateCrtKey key = (RSAPrivateCrtKey) Keys.readPrivate(library, "RSA", Keys.bytesOfPem(pem));
        PublicKey publicKey = library.keyFactory("RSA")
                .generatePublic(new RSAPublicKeySpec(key.getModulus(), key.getPublicExponent()));
        KeyPair pair = new KeyPair(publicKey, key);
        boolean isPooled = task.choice.equals("key-pooled");
        String algorithm = "SHA256withRSA";
        Keys keys = isPooled ? pool(library, pair) : RsaKeys.of(task.choice, library, key, publicKey);
        Route route = looking(library, algorithm, isKept, keys);
        return new Signing(task, library, algorithm, pair, route, bytes);
    }

    /** An RSA key of the size that the generator has by itself, or of one that is held to. */
    static Operation byDefault(Task task, Library library) throws Exception {
        int bits = task.choice.equals("rsa") ? task.number("bits", 2048) : 0;
        if (task.isNull()) {
            return NOTHING;
        }
        KeyPairGenerator generator = library.keyPairs("RSA");
        if (bits > 0) {
            generator.initialize(bits);
        }
        KeyPair pair = generator.generateKeyPair();
        Keys keys = Keys.kept(pair.getPrivate(), pair.getPublic());
        String algorithm = "SHA256withRSA";
        return new Signing(task, library, algorithm, pair, looking(library, algorithm, true, keys), 60);
    }

    static Operation ecdsa(Task task, Library library) throws Exception {
        int bytes = task.bytes(32);
        String algorithm = ECDSA.get(task.word("digest", "sha-256", "sha-384", "sha-512"));
        String from = task.word("key", "kept", "from-pem", "from-der");
        task.processor();
        if (task.isNull()) {
            return NOTHING;
        }
        KeyPair pair = onCurve(library);
        Keys keys = from.equals("kept")
                ? Keys.kept(pair.getPrivate(), pair.getPublic())
                : from.equals("from-pem")
                        ? Keys.fromPem(library, pair.getPrivate(), pair.getPublic())
                        : Keys.fromDer(library, pair.getPrivate(), pair.getPublic());
        return new Signing(task, library, algorithm, pair, looking(library, algorithm, true, keys), bytes);
    }

    /** A key by its route, and the algorithm kept as an object or looked up by its name in each call. */
    private static Route looking(Library library, String algorithm, boolean isKept, Keys keys) throws Exception {
        Signature kept = library.signature(algorithm);
        return new Route() {
            private Signature find() throws GeneralSecurityException {
                return isKept ? kept : library.signature(algorithm);
            }

            @Override
            public byte[] sign(byte[] message) throws Exception {
                Signature signature = find();
                signature.initSign(keys.forSigning());
                signature.update(message);
                return signature.sign();
            }

            @Override
            public boolean verify(byte[] message, byte[] made) throws Exception {
                Signature signature = find();
                signature.initVerify(keys.forVerifying());
                signature.update(message);
                return accepts(signature, made);
            }
        };
    }

    /** Keys taken from a pool, as the workers of a server share them. */
    private static Keys pool(Library library, KeyPair pair) throws Exception {
        BlockingQueue<PrivateKey> privateKeys = new ArrayBlockingQueue<>(POOL);
        BlockingQueue<PublicKey> publicKeys = new ArrayBlockingQueue<>(POOL);
        Keys imported = Keys.fromDer(library, pair.getPrivate(), pair.getPublic());
        for (int made = 0; made < POOL; made++) {
            privateKeys.add(imported.forSigning());
            publicKeys.add(imported.forVerifying());
        }
        return Keys.of(() -> next(privateKeys), () -> next(publicKeys));
    }

    /** Given back at once: one thread performs, so no other can take it meanwhile. */
    private static <K> K next(BlockingQueue<K> keys) throws InterruptedException {
        K key = keys.take();
        keys.add(key);
        return key;
    }

    private static boolean accepts(Signature signature, byte[] made) {
        try {
            return signature.verify(made);
        } catch (SignatureException error) {
            // Providers say so of a signature whose form is wrong.
            return false;
        }
    }

    private static KeyPair onCurve(Library library) throws GeneralSecurityException {
        KeyPairGenerator generator = library.keyPairs("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair();
    }

    /** A key of the same kind, which verifies nothing that the first has signed. */
    private PublicKey another() throws GeneralSecurityException {
        return pair.getPrivate().getAlgorithm().equals("RSA")
                ? library.keyFactory("RSA").generatePublic(new RSAPublicKeySpec(ANOTHER_MODULUS, RSAKeyGenParameterSpec.F4))
                : onCurve(library).getPublic();
    }

    @Override
    public int perform() throws Exception {
        if (signature == null) {
            byte[] made = route.sign(message);
            return made[made.length - 1];
        }
        if (!route.verify(message, signature)) {
            throw Refusal.failed("the library refused a valid signature");
        }
        return 1;
    }

    @Override
    public Proof prove() throws Exception {
        Proof proof = new Proof();
        byte[] made = route.sign(message);
        proof.accept("its own signature", route.verify(message, made));
        proof.refuse("a tampered message", !route.verify(Task.tampered(message, 0), made));
        proof.refuse("a tampered signature", !route.verify(message, Task.tampered(made, -1)));
        Keys strange = Keys.kept(pair.getPrivate(), another());
        proof.refuse("another key", !looking(library, algorithm, true, strange).verify(message, made));
        return pair.getPrivate().getAlgorithm().equals("RSA") ? proveRsa(proof, made) : proveEcdsa(proof);
    }

    private Proof proveRsa(Proof proof, byte[] made) throws Exception {
        // PKCS#1 v1.5 is deterministic.
        proof.accept("the same message again", Arrays.equals(made, route.sign(message)));
        Signature pss = library.signature("RSASSA-PSS");
        pss.setParameter(new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1));
        pss.initSign(pair.getPrivate());
        pss.update(message);
        proof.refuse("another padding (PSS)", !route.verify(message, pss.sign()));
        byte[] known = task.known();
        if (known != null) {
            byte[] answer = route.sign(known);
            proof.accept("the known answer, verified", route.verify(known, answer));
            proof.answer(answer);
        }
        return proof;
    }

    private Proof proveEcdsa(Proof proof) throws Exception {
        byte[] known = task.known();
        if (known != null) {
            proof.answer(published(known));
        }
        String text = task.input("of") == null ? "tollbar" : task.input("of");
        byte[] made = route.sign(text.getBytes(StandardCharsets.UTF_8));
        proof.made(text, made, pair.getPublic().getEncoded());
        return proof;
    }

    /** Returns a published signature that was accepted under its own key; null if the task lacks a part of it. */
    private byte[] published(byte[] known) throws Exception {
        byte[] info = task.hex("public_key_der");
        byte[] expected = task.hex("expected");
        if (info == null || expected == null) {
            return null;
        }
        Keys keys = Keys.kept(null, Keys.readPublic(library, "EC", info));
        if (!looking(library, algorithm, true, keys).verify(known, expected)) {
            throw Refusal.failed("the library refused the published signature");
        }
        return expected;
    }
}
