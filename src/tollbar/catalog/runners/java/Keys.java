import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;

/** Where a key comes from in each call: kept, or imported each time, from what was made ready beforehand. */
interface Keys {
    PrivateKey forSigning() throws Exception;

    PublicKey forVerifying() throws Exception;

    /** The same two objects in every call. */
    static Keys kept(PrivateKey privateKey, PublicKey publicKey) {
        return of(() -> privateKey, () -> publicKey);
    }

    /** PKCS#8 and SubjectPublicKeyInfo, imported in every call. */
    static Keys fromDer(Library library, PrivateKey privateKey, PublicKey publicKey) {
        String name = privateKey.getAlgorithm();
        byte[] pkcs8 = privateKey.getEncoded();
        byte[] info = publicKey.getEncoded();
        return of(() -> readPrivate(library, name, pkcs8), () -> readPublic(library, name, info));
    }

    /** The same in PEM. The JDK reads no PEM, so its users take the lines off and decode what is between them. */
    static Keys fromPem(Library library, PrivateKey privateKey, PublicKey publicKey) {
        String name = privateKey.getAlgorithm();
        String privatePem = pem("PRIVATE KEY", privateKey.getEncoded());
        String publicPem = pem("PUBLIC KEY", publicKey.getEncoded());
        return of(
                () -> readPrivate(library, name, bytesOfPem(privatePem)),
                () -> readPublic(library, name, bytesOfPem(publicPem)));
    }

    interface Source<K> {
        K next() throws Exception;
    }

    static Keys of(Source<PrivateKey> privateKeys, Source<PublicKey> publicKeys) {
        return new Keys() {
            @Override
            public PrivateKey forSigning() throws Exception {
                return privateKeys.next();
            }

            @Override
            public PublicKey forVerifying() throws Exception {
                return publicKeys.next();
            }
        };
    }

    /** The factory is looked up with each key, as programs do that import one. */
    static PrivateKey readPrivate(Library library, String algorithm, byte[] pkcs8) throws Exception {
        KeyFactory factory = library.keyFactory(algorithm);
        return factory.generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
    }

    static PublicKey readPublic(Library library, String algorithm, byte[] info) throws Exception {
        KeyFactory factory = library.keyFactory(algorithm);
        return factory.generatePublic(new X509EncodedKeySpec(info));
    }

    static byte[] bytesOfPem(String pem) {
        int start = pem.indexOf('\n') + 1;
        return Base64.getMimeDecoder().decode(pem.substring(start, pem.indexOf("-----END", start)));
    }

    private static String pem(String label, byte[] der) {
        byte[] lineEnd = "\n".getBytes(StandardCharsets.US_ASCII);
        String lines = Base64.getMimeEncoder(64, lineEnd).encodeToString(der);
        return "-----BEGIN " + label + "-----\n" + lines + "\n-----END " + label + "-----\n";
    }
}
