import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.RSAPrivateCrtKeySpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.List;

/** The routes by which an RSA key comes to each call. */
final class RsaKeys {
    static final List<String> CHOICES = List.of(
            "key-cached", "key-from-pem", "key-from-der", "key-from-parameters", "key-from-store", "key-pooled");
    private static final char[] PASSWORD = "not a secret".toCharArray();

    private RsaKeys() {}

    static Keys of(String choice, Library library, RSAPrivateCrtKey key, PublicKey publicKey) throws Exception {
        switch (choice) {
            case "key-from-pem":
                return Keys.fromPem(library, key, publicKey);
            case "key-from-der":
                return Keys.fromDer(library, key, publicKey);
            case "key-from-parameters":
                return fromParameters(library, key);
            case "key-from-store":
                return fromStore(library, key, publicKey);
            default:
                return Keys.kept(key, publicKey);
        }
    }

    /** n, e, d, p, q, d mod p−1, d mod q−1, 1/q mod p: big-endian bytes, as keys are published. */
    private static Keys fromParameters(Library library, RSAPrivateCrtKey key) {
        byte[][] all = {
            key.getModulus().toByteArray(), key.getPublicExponent().toByteArray(), key.getPrivateExponent().toByteArray(),
            key.getPrimeP().toByteArray(), key.getPrimeQ().toByteArray(), key.getPrimeExponentP().toByteArray(),
            key.getPrimeExponentQ().toByteArray(), key.getCrtCoefficient().toByteArray(),
        };
        return Keys.of(
                () -> library.keyFactory("RSA").generatePrivate(new RSAPrivateCrtKeySpec(
                        new BigInteger(1, all[0]), new BigInteger(1, all[1]), new BigInteger(1, all[2]),
                        new BigInteger(1, all[3]), new BigInteger(1, all[4]), new BigInteger(1, all[5]),
                        new BigInteger(1, all[6]), new BigInteger(1, all[7]))),
                () -> library.keyFactory("RSA").generatePublic(
                        new RSAPublicKeySpec(new BigInteger(1, all[0]), new BigInteger(1, all[1]))));
    }

    /** A PKCS#12 KeyStore, written and loaded once; each call asks it for its key, or its certificate's. */
    private static Keys fromStore(Library library, PrivateKey key, PublicKey publicKey) throws Exception {
        String alias = "tollbar";
        byte[] der = Certificates.selfSigned(library, key, publicKey);
        Certificate certificate = CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(der));
        KeyStore made = library.keyStore();
        made.load(null, null);
        made.setKeyEntry(alias, key, PASSWORD, new Certificate[] {certificate});
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        made.store(file, PASSWORD);
        KeyStore store = library.keyStore();
        store.load(new ByteArrayInputStream(file.toByteArray()), PASSWORD);
        return Keys.of(
                () -> (PrivateKey) store.getKey(alias, PASSWORD), () -> store.getCertificate(alias).getPublicKey());
    }
}
