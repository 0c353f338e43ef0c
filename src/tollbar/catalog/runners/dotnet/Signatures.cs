using System;
using System.Collections.Generic;
using System.Security.Cryptography;
using System.Text;

/// <summary>One key pair in the forms that calls import it from, and what a class of the platform does with it.</summary>
interface IKeyPair
{
    /// <summary>The private key as this call finds it: kept, from a pool, or imported now.</summary>
    AsymmetricAlgorithm TakePrivate();

    AsymmetricAlgorithm TakePublic();

    /// <summary>Ends what a call has taken: given back to the pool, kept, or disposed of.</summary>
    void GiveBack(AsymmetricAlgorithm key);

    byte[] Sign(AsymmetricAlgorithm key, byte[] message);

    bool Verify(AsymmetricAlgorithm key, byte[] message, byte[] signature);

    /// <summary>Whether each call imports the key.</summary>
    bool IsImported { get; }

    /// <summary>The key that was read once.</summary>
    AsymmetricAlgorithm Kept { get; }

    /// <summary>Puts another pair in the place of what calls import, until `Restore`; what was read once stays. Returns the other.</summary>
    AsymmetricAlgorithm Replace();

    void Restore();
}

/// <summary>Signs or verifies one message, with the key that each call takes.</summary>
sealed class Signatures : IOperation
{
    readonly WorkTask task;
    readonly IKeyPair keys;
    readonly Action<Signatures, Proof> proveMore;
    readonly byte[] message, signature;

    public Signatures(WorkTask task, IKeyPair keys, int bytes, Action<Signatures, Proof> proveMore)
    {
        this.task = task;
        this.keys = keys;
        this.proveMore = proveMore;
        message = Data.Filled(bytes, task.Seed);
        signature = Sign(message);
    }

    public byte Perform()
    {
        if (task.Op == "sign")
        {
            var made = Sign(message);
            return made[made.Length - 1];
        }
        if (!Verify(message, signature))
        {
            throw Refusal.Failed("the library refused a valid signature");
        }
        return 1;
    }

    public byte[] Message => message;

    public byte[] Sign(byte[] data)
    {
        var key = keys.TakePrivate();
        try
        {
            return keys.Sign(key, data);
        }
        finally
        {
            keys.GiveBack(key);
        }
    }

    public bool Verify(byte[] data, byte[] made)
    {
        var key = keys.TakePublic();
        try
        {
            return keys.Verify(key, data, made);
        }
        finally
        {
            keys.GiveBack(key);
        }
    }

    public void Prove(Proof proof)
    {
        proveMore(this, proof);
        proof.Accept("its own signature", Verify(message, signature));
        proof.Refuse("a tampered message", !Verify(Data.Tampered(message), signature));
        proof.Refuse("a tampered signature", !Verify(message, Data.Tampered(signature)));
        var other = keys.Replace();
        proof.Refuse("another key", !keys.Verify(other, message, signature));
        if (keys.IsImported)
        {
            // The calls that follow have to be the other key's.
            var second = Sign(message);
            bool isOther = Verify(message, second) && keys.Verify(other, message, second) && !keys.Verify(keys.Kept, message, second);
            proof.Accept("another key, put in the place of the first between two calls", isOther);
        }
        keys.Restore();
    }
}

/// <summary>ECDSA by ECDsa.Create, whose signatures are the two numbers one after the other (IEEE P1363).</summary>
sealed class Ecdsa : IKeyPair
{
    /// Encoded key that calls import.
    sealed class Forms
    {
        public string PrivatePem, PublicPem;
        public byte[] PrivateDer, PublicDer;
    }

    readonly string way;
    readonly ECDsa kept;
    readonly Forms own;
    Forms forms;

    public static IOperation Prepare(WorkTask task)
    {
        int bytes = task.Bytes(32);
        string digest = task.Word("digest", "sha-256", "sha-1", "sha-384", "sha-512", "none");
        if (digest != "sha-256")
        {
            throw task.Without($"this runner signs what SHA-256 has hashed, not {digest}");
        }
        string way = task.Word("key", "kept", "from-pem", "from-der");
        if (task.Choice == "none")
        {
            return new Nothing();
        }
        var key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        var keys = new Ecdsa(way, key);
        return new Signatures(task, keys, bytes, (signatures, proof) => ProveKnown(task, keys, signatures, proof));
    }

    Ecdsa(string way, ECDsa key)
    {
        this.way = way;
        kept = key;
        own = forms = Written(key);
    }

    static Forms Written(ECDsa key)
    {
        byte[] privateDer = key.ExportPkcs8PrivateKey(), publicDer = key.ExportSubjectPublicKeyInfo();
        return new Forms
        {
            PrivateDer = privateDer, PrivatePem = Pem.Write("PRIVATE KEY", privateDer),
            PublicDer = publicDer, PublicPem = Pem.Write("PUBLIC KEY", publicDer),
        };
    }

    public bool IsImported => way != "kept";

    public AsymmetricAlgorithm Kept => kept;

    public AsymmetricAlgorithm Replace()
    {
        var other = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        forms = Written(other);
        return other;
    }

    public void Restore() => forms = own;

    public AsymmetricAlgorithm TakePrivate()
    {
        if (way == "kept")
        {
            return kept;
        }
        var key = ECDsa.Create();
        key.ImportPkcs8PrivateKey(way == "from-pem" ? Pem.Read(forms.PrivatePem) : forms.PrivateDer, out int _);
        return key;
    }

    public AsymmetricAlgorithm TakePublic()
    {
        if (way == "kept")
        {
            return kept;
        }
        return ReadPublic(way == "from-pem" ? Pem.Read(forms.PublicPem) : forms.PublicDer);
    }

    public void GiveBack(AsymmetricAlgorithm key)
    {
        if (key != kept)
        {
            key.Dispose();
        }
    }

    public byte[] Sign(AsymmetricAlgorithm key, byte[] message) => ((ECDsa)key).SignData(message, HashAlgorithmName.SHA256);

    public bool Verify(AsymmetricAlgorithm key, byte[] message, byte[] signature)
    {
        return ((ECDsa)key).VerifyData(message, signature, HashAlgorithmName.SHA256);
    }

    static ECDsa ReadPublic(byte[] der)
    {
        var key = ECDsa.Create();
        key.ImportSubjectPublicKeyInfo(der, out int _);
        return key;
    }

    /// <summary>Signing is randomised: the proof accepts a published signature, and makes one for others to verify.</summary>
    static void ProveKnown(WorkTask task, Ecdsa keys, Signatures signatures, Proof proof)
    {
        if (task.Op == "sign")
        {
            string of = task.Input("of") ?? "tollbar";
            proof.Made = new Dictionary<string, object>
            {
                ["of"] = of, ["signature_hex"] = Data.ToHex(Der.Write(signatures.Sign(Encoding.UTF8.GetBytes(of)))),
                ["public_key_der_hex"] = Data.ToHex(keys.own.PublicDer),
            };
        }
        byte[] message = task.Message(), expected = task.Hex("expected"), der = task.Hex("public_key_der");
        if (message == null || expected == null || der == null)
        {
            return;
        }
        using (var published = ReadPublic(der))
        {
            if (!keys.Verify(published, message, Der.Read(expected)))
            {
                throw Refusal.Failed("the library refused the published signature");
            }
        }
        proof.Answer = expected;
    }
}

/// <summary>An ECDSA signature over P-256 in DER, as others write it: a SEQUENCE of two INTEGERs.</summary>
static class Der
{
    const int NumberBytes = 32;

    public static byte[] Write(byte[] numbers)
    {
        var body = new List<byte>();
        for (int start = 0; start < 2 * NumberBytes; start += NumberBytes)
        {
            int first = start;
            while (first < start + NumberBytes - 1 && numbers[first] == 0)
            {
                first++;
            }
            bool isNegative = numbers[first] >= 0x80;
            body.Add(2);
            body.Add((byte)(start + NumberBytes - first + (isNegative ? 1 : 0)));
            if (isNegative)
            {
                body.Add(0);
            }
            body.AddRange(new ArraySegment<byte>(numbers, first, start + NumberBytes - first));
        }
        body.InsertRange(0, new[] { (byte)0x30, (byte)body.Count });
        return body.ToArray();
    }

    public static byte[] Read(byte[] der)
    {
        var numbers = new byte[2 * NumberBytes];
        for (int index = 0, at = 2; index < 2; index++)
        {
            int length = der[at + 1], skipped = Math.Max(0, length - NumberBytes);
            Array.Copy(der, at + 2 + skipped, numbers, (index + 1) * NumberBytes - (length - skipped), length - skipped);
            at += 2 + length;
        }
        return numbers;
    }
}

/// <summary>PEM as .NET Core 3.1 has to be fed it: the runtime reads DER, and what is around that is the caller's.</summary>
static class Pem
{
    public static string Write(string label, byte[] der)
    {
        string text = Convert.ToBase64String(der, Base64FormattingOptions.InsertLineBreaks);
        return $"-----BEGIN {label}-----\n{text}\n-----END {label}-----\n";
    }

    public static byte[] Read(string pem)
    {
        int start = pem.IndexOf('\n') + 1, end = pem.IndexOf("-----END", StringComparison.Ordinal);
        if (!pem.StartsWith("-----BEGIN ", StringComparison.Ordinal) || end < start)
        {
            throw Refusal.Failed("the key is not in PEM");
        }
        return Convert.FromBase64String(pem.Substring(start, end - start));
    }
}
