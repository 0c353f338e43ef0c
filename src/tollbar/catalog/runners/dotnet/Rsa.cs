using System;
using System.Collections.Concurrent;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

/// <summary>RSA with SHA-256 and PKCS#1 v1.5 by one of the platform's three classes.</summary>
sealed class Rsa : IKeyPair
{
    /// <summary>The first is what a task means that names none; it also performs the other families.</summary>
    public static readonly string[] Packages = { "rsa-create", "rsa-csp", "rsa-openssl" };

    /// Number of ready keys: one for each worker of a server.
    const int PooledKeys = 8;

    /// Encoded key that calls import.
    sealed class Forms
    {
        public string PrivatePem, PublicPem;
        public byte[] PrivateDer, PublicDer, PrivateBlob, PublicBlob;
        public RSAParameters Private, Public;
        public X509Certificate2 Certificate;
    }

    readonly string package, way;
    readonly RSA kept;
    /// A digest as an object that is made once; null where each call makes one, or names the digest.
    readonly SHA256 hash;
    readonly bool makesHash;
    // A bag would give its one thread the key that it put back last.
    readonly ConcurrentQueue<RSA> pool = new ConcurrentQueue<RSA>();
    readonly Forms own;
    Forms forms;

    public static string ClassOf(string package)
    {
        return package == "rsa-create" ? "RSA.Create" : package == "rsa-csp" ? "RSACryptoServiceProvider" : "RSAOpenSsl";
    }

    public static bool HasStore(string package) => package != "rsa-csp";

    public static string DigestOf(string package)
    {
        string fetched = package == "rsa-csp" ? "SignData with one SHA256 object" : "one SHA256 object, then SignHash";
        return $"fetched: {fetched}; made: the same with an object of each call; implicit: SignData with HashAlgorithmName.SHA256";
    }

    public static IOperation Prepare(WorkTask task)
    {
        int bytes = task.Bytes(60);
        string digest = task.Word("digest", "fetched", "implicit", "made");
        if (task.Choice == "none")
        {
            return new Nothing();
        }
        string way = task.Choice.Replace("key-from-", "").Replace("key-", "");
        if (way == "store" && !HasStore(task.Package))
        {
            throw task.Without("a certificate's key is an RSAOpenSsl here; an RSACryptoServiceProvider names a key store by CspParameters, which need Windows");
        }
        string pem = task.Input("private_key_pem");
        if (pem == null)
        {
            throw Refusal.Failed("the input `private_key_pem` is missing");
        }
        var key = RSA.Create();
        key.ImportPkcs8PrivateKey(Pem.Read(pem), out int _);
        var keys = new Rsa(task.Package, way, digest, key);
        return new Signatures(task, keys, bytes, (signatures, proof) => ProveKnown(task, key, signatures, proof));
    }

    Rsa(string package, string way, string digest, RSA key)
    {
        this.package = package;
        this.way = way;
        hash = digest == "fetched" ? SHA256.Create() : null;
        makesHash = digest == "made";
        own = forms = Written(key);
        kept = Imported(own);
        while (way == "pooled" && pool.Count < PooledKeys)
        {
            pool.Enqueue(Imported(own));
        }
    }

    Forms Written(RSA key)
    {
        byte[] privateDer = key.ExportPkcs8PrivateKey(), publicDer = key.ExportSubjectPublicKeyInfo();
        var written = new Forms
        {
            PrivateDer = privateDer, PrivatePem = Pem.Write("PRIVATE KEY", privateDer),
            PublicDer = publicDer, PublicPem = Pem.Write("PUBLIC KEY", publicDer),
            Private = key.ExportParameters(true), Public = key.ExportParameters(false),
            Certificate = way == "store" ? Certified(key) : null,
        };
        if (Imported(written) is RSACryptoServiceProvider csp)
        {
            written.PrivateBlob = csp.ExportCspBlob(true);
            written.PublicBlob = csp.ExportCspBlob(false);
        }
        return written;
    }

    static X509Certificate2 Certified(RSA key)
    {
        var request = new CertificateRequest("CN=tollbar", key, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
        var now = DateTimeOffset.UtcNow;
        using (var made = request.CreateSelfSigned(now, now.AddDays(1)))
        {
            // Read back as a server reads it: certificate and key out of one file.
            return new X509Certificate2(made.Export(X509ContentType.Pfx), "", X509KeyStorageFlags.Exportable);
        }
    }

    public bool IsImported => way != "cached" && way != "pooled";

    public AsymmetricAlgorithm Kept => kept;

    public AsymmetricAlgorithm Replace()
    {
        var other = RSA.Create(2048);
        forms = Written(other);
        return Imported(forms);
    }

    public void Restore() => forms = own;

    public AsymmetricAlgorithm TakePrivate()
    {
        switch (way)
        {
            case "cached":
                return kept;
            case "pooled":
                return pool.TryDequeue(out RSA pooled) ? pooled : throw Refusal.Failed("the pool is empty");
            case "store":
                return forms.Certificate.GetRSAPrivateKey();
        }
        var key = New();
        if (way == "parameters")
        {
            key.ImportParameters(forms.Private);
        }
        else if (way == "der" && key is RSACryptoServiceProvider csp)
        {
            csp.ImportCspBlob(forms.PrivateBlob);
        }
        else
        {
            key.ImportPkcs8PrivateKey(way == "pem" ? Pem.Read(forms.PrivatePem) : forms.PrivateDer, out int _);
        }
        return key;
    }

    public AsymmetricAlgorithm TakePublic()
    {
        switch (way)
        {
            case "cached":
            case "pooled":
                return TakePrivate();
            case "store":
                return forms.Certificate.GetRSAPublicKey();
        }
        var key = New();
        if (way == "parameters")
        {
            key.ImportParameters(forms.Public);
        }
        else if (way == "der" && key is RSACryptoServiceProvider csp)
        {
            csp.ImportCspBlob(forms.PublicBlob);
        }
        else
        {
            key.ImportSubjectPublicKeyInfo(way == "pem" ? Pem.Read(forms.PublicPem) : forms.PublicDer, out int _);
        }
        return key;
    }

    public void GiveBack(AsymmetricAlgorithm key)
    {
        if (way == "pooled")
        {
            pool.Enqueue((RSA)key);
        }
        else if (key != kept)
        {
            key.Dispose();
        }
    }

    public byte[] Sign(AsymmetricAlgorithm key, byte[] message)
    {
        var rsa = (RSA)key;
        if (makesHash)
        {
            using (var made = SHA256.Create())
            {
                return Sign(rsa, message, made);
            }
        }
        return hash == null
            ? rsa.SignData(message, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)
            : Sign(rsa, message, hash);
    }

    static byte[] Sign(RSA key, byte[] message, SHA256 hash)
    {
        return key is RSACryptoServiceProvider csp
            ? csp.SignData(message, hash)
            : key.SignHash(hash.ComputeHash(message), HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
    }

    public bool Verify(AsymmetricAlgorithm key, byte[] message, byte[] signature)
    {
        var rsa = (RSA)key;
        if (makesHash)
        {
            using (var made = SHA256.Create())
            {
                return Verify(rsa, message, signature, made);
            }
        }
        return hash == null
            ? rsa.VerifyData(message, signature, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)
            : Verify(rsa, message, signature, hash);
    }

    static bool Verify(RSA key, byte[] message, byte[] signature, SHA256 hash)
    {
        return key is RSACryptoServiceProvider csp
            ? csp.VerifyData(message, hash, signature)
            : key.VerifyHash(hash.ComputeHash(message), signature, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
    }

    /// <summary>A key of this package's class with nothing in it.</summary>
    RSA New()
    {
        return package == "rsa-create" ? RSA.Create() : package == "rsa-csp" ? (RSA)new RSACryptoServiceProvider() : new RSAOpenSsl();
    }

    RSA Imported(Forms written)
    {
        var key = New();
        key.ImportParameters(written.Private);
        return key;
    }

    static void ProveKnown(WorkTask task, RSA key, Signatures signatures, Proof proof)
    {
        var pss = key.SignData(signatures.Message, HashAlgorithmName.SHA256, RSASignaturePadding.Pss);
        proof.Refuse("another padding", !signatures.Verify(signatures.Message, pss));
        byte[] message = task.Message(), expected = task.Hex("expected");
        if (message == null || expected == null)
        {
            return;
        }
        if (task.Op == "sign")
        {
            proof.Answer = signatures.Sign(message);
            return;
        }
        if (!signatures.Verify(message, expected))
        {
            throw Refusal.Failed("the library refused the known signature");
        }
        proof.Answer = expected;
    }
}
