using System;
using System.Security.Cryptography;

/// <summary>SHA-256 by one kept object, or by an object that each call makes by its name.</summary>
sealed class Digest : IOperation
{
    readonly WorkTask task;
    readonly byte[] message;
    readonly HashAlgorithm kept;

    public static IOperation Prepare(WorkTask task)
    {
        int bytes = task.Bytes(4096);
        string lookup = task.Word("lookup", "fetched", "implicit");
        return task.Choice == "none" ? new Nothing() : (IOperation)new Digest(task, bytes, lookup);
    }

    Digest(WorkTask task, int bytes, string lookup)
    {
        this.task = task;
        message = Data.Filled(bytes, task.Seed);
        kept = lookup == "fetched" ? SHA256.Create() : null;
    }

    public byte Perform() => Hash(message)[0];

    byte[] Hash(byte[] data)
    {
        if (kept != null)
        {
            return kept.ComputeHash(data);
        }
        using (var made = HashAlgorithm.Create("SHA256"))
        {
            return made.ComputeHash(data);
        }
    }

    public void Prove(Proof proof)
    {
        var known = task.Message();
        if (known != null)
        {
            proof.Answer = Hash(known);
        }
        var right = Hash(message);
        proof.Accept("the same message again", Data.Same(right, Hash(message)));
        proof.Refuse("a tampered message", !Data.Same(right, Hash(Data.Tampered(message))));
    }
}

/// <summary>AES-256-GCM by AesGcm, with a key that is set up once (kept), or again for each message.</summary>
sealed class Cipher : IOperation
{
    const int KeyBytes = 32, NonceBytes = 12, TagBytes = 16;

    readonly WorkTask task;
    readonly byte[] key, nonce, plain, sealedText, tag = new byte[TagBytes], opened;
    readonly AesGcm kept;

    public static IOperation Prepare(WorkTask task)
    {
        int bytes = task.Bytes(4096);
        string way = task.Word("key", "kept", "fresh");
        return task.Choice == "none" ? new Nothing() : (IOperation)new Cipher(task, bytes, way);
    }

    Cipher(WorkTask task, int bytes, string way)
    {
        this.task = task;
        key = Data.Filled(KeyBytes, ~task.Seed);
        nonce = Data.Filled(NonceBytes, task.Seed << 32 | task.Seed >> 32);
        plain = Data.Filled(bytes, task.Seed);
        sealedText = new byte[bytes];
        opened = new byte[bytes];
        kept = way == "kept" ? new AesGcm(key) : null;
        Encrypt();
    }

    public byte Perform()
    {
        if (task.Op == "encrypt")
        {
            Encrypt();
            return tag[0];
        }
        if (kept != null)
        {
            kept.Decrypt(nonce, sealedText, tag, opened);
        }
        else
        {
            using (var fresh = new AesGcm(key))
            {
                fresh.Decrypt(nonce, sealedText, tag, opened);
            }
        }
        return opened.Length > 0 ? opened[0] : (byte)0;
    }

    void Encrypt()
    {
        // A nonce used twice reveals the plaintexts, so each message has the next one.
        for (int index = NonceBytes - 1; index >= 0 && ++nonce[index] == 0; index--)
        {
        }
        if (kept != null)
        {
            kept.Encrypt(nonce, plain, sealedText, tag);
            return;
        }
        using (var fresh = new AesGcm(key))
        {
            fresh.Encrypt(nonce, plain, sealedText, tag);
        }
    }

    public void Prove(Proof proof)
    {
        ProveKnown(proof);
        Encrypt();
        proof.Accept("its own ciphertext", Opens(key, nonce, sealedText, tag));
        byte[] first = (byte[])sealedText.Clone(), firstTag = (byte[])tag.Clone();
        Encrypt();
        proof.Refuse("the same ciphertext twice", !Data.Same(first, sealedText) || !Data.Same(firstTag, tag));
        if (plain.Length == 0)
        {
            proof.Leave("a tampered ciphertext", "nothing encrypted is nothing to tamper with");
        }
        else
        {
            proof.Refuse("a tampered ciphertext", !Opens(key, nonce, Data.Tampered(sealedText), tag));
        }
        proof.Refuse("a tampered tag", !Opens(key, nonce, sealedText, Data.Tampered(tag)));
        proof.Refuse("another nonce", !Opens(key, Data.Tampered(nonce), sealedText, tag));
        proof.Refuse("another key", !Opens(Data.Tampered(key), nonce, sealedText, tag));
    }

    /// <summary>Returns whether it decrypts to the plaintext.</summary>
    bool Opens(byte[] withKey, byte[] withNonce, byte[] ciphertext, byte[] withTag)
    {
        Array.Clear(opened, 0, opened.Length);
        try
        {
            using (var gcm = new AesGcm(withKey))
            {
                gcm.Decrypt(withNonce, ciphertext, withTag, opened);
            }
        }
        catch (CryptographicException)
        {
            return false;
        }
        return Data.Same(opened, plain);
    }

    /// <summary>Encrypts the inputs of the known answer, and checks that the result decrypts again.</summary>
    void ProveKnown(Proof proof)
    {
        byte[] known = task.Message(), withKey = task.Hex("key"), withNonce = task.Hex("iv");
        if (known == null || withKey == null || withNonce == null)
        {
            return;
        }
        if (withNonce.Length != NonceBytes)
        {
            throw Refusal.Unsupported($"AesGcm needs nonces of {NonceBytes} bytes");
        }
        byte[] answer = new byte[known.Length], answerTag = new byte[TagBytes], again = new byte[known.Length];
        using (var gcm = new AesGcm(withKey))
        {
            gcm.Encrypt(withNonce, known, answer, answerTag, task.Hex("aad"));
            gcm.Decrypt(withNonce, answer, answerTag, again, task.Hex("aad"));
        }
        if (!Data.Same(known, again))
        {
            throw Refusal.Failed("the known answer does not decrypt to its plaintext");
        }
        proof.Answer = Data.FromHex(Data.ToHex(answer) + Data.ToHex(answerTag));
    }
}
