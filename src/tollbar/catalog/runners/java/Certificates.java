import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import javax.security.auth.x500.X500Principal;

/** A self-signed certificate: a KeyStore holds no private key without one, and the JDK has no public call that makes it. */
final class Certificates {
    private static final int SEQUENCE = 0x30;
    private static final int INTEGER = 0x02;
    private static final int BIT_STRING = 0x03;
    private static final int UTC_TIME = 0x17;
    private static final int VERSION = 0xa0;
    /** sha256WithRSAEncryption, and NULL for its parameters. */
    private static final byte[] ALGORITHM = Hex.bytes("300d06092a864886f70d01010b0500");

    private Certificates() {}

    /** In DER; RSA with SHA-256. */
    static byte[] selfSigned(Library library, PrivateKey key, PublicKey publicKey) throws Exception {
        byte[] name = new X500Principal("CN=tollbar").getEncoded();
        byte[] validity = der(SEQUENCE, time("250101000000Z"), time("491231235959Z"));
        byte[] one = der(INTEGER, new byte[] {1});
        byte[] third = der(VERSION, der(INTEGER, new byte[] {2}));
        byte[] body = der(SEQUENCE, third, one, ALGORITHM, name, validity, name, publicKey.getEncoded());
        Signature signature = library.signature("SHA256withRSA");
        signature.initSign(key);
        signature.update(body);
        return der(SEQUENCE, body, ALGORITHM, der(BIT_STRING, new byte[] {0}, signature.sign()));
    }

    private static byte[] time(String text) {
        return der(UTC_TIME, text.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] der(int tag, byte[]... parts) {
        ByteArrayOutputStream value = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            value.writeBytes(part);
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(tag);
        int length = value.size();
        if (length < 0x80) {
            all.write(length);
        } else if (length < 0x100) {
            all.write(0x81);
            all.write(length);
        } else {
            all.write(0x82);
            all.write(length >> 8);
            all.write(length);
        }
        all.writeBytes(value.toByteArray());
        return all.toByteArray();
    }
}
