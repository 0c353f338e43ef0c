// Tollbar's runner for .NET: its RSA classes, ECDSA, SHA-256 and AES-GCM, over the runner contract (docs/runners.md).
// Kept to C# 7 and .NET Core 3.1, because mcs compiles it where there is no SDK.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text.Json;

/// <summary>The timed work.</summary>
interface IOperation
{
    /// <summary>Runs it once. The returned byte depends on the answer, so that no compiler removes the work.</summary>
    byte Perform();

    /// <summary>Checks that valid inputs are accepted and wrong ones refused.</summary>
    void Prove(Proof proof);
}

/// <summary>Null choice of every family.</summary>
sealed class Nothing : IOperation
{
    public byte Perform() => 0;

    public void Prove(Proof proof)
    {
        proof.Accept("the empty operation", true);
        proof.Leave("a wrong input", "the null choice reads none");
    }
}

static class Runner
{
    sealed class Family
    {
        public string[] Choices;
        public string[] Operations;
        public Func<WorkTask, IOperation> Prepare;
    }

    static readonly Dictionary<string, Family> Families = new Dictionary<string, Family>
    {
        ["rsa-api"] = new Family
        {
            Choices = new[] { "none", "key-cached", "key-from-pem", "key-from-der", "key-from-parameters", "key-from-store", "key-pooled" },
            Operations = new[] { "sign", "verify" },
            Prepare = Rsa.Prepare,
        },
        ["signature"] = new Family
        {
            Choices = new[] { "none", "ecdsa-p256" }, Operations = new[] { "sign", "verify" }, Prepare = Ecdsa.Prepare,
        },
        ["digest"] = new Family { Choices = new[] { "none", "sha-256" }, Operations = new[] { "hash" }, Prepare = Digest.Prepare },
        ["cipher"] = new Family
        {
            Choices = new[] { "none", "aes-256-gcm" }, Operations = new[] { "encrypt", "decrypt" }, Prepare = Cipher.Prepare,
        },
    };

    static int Main()
    {
        TextReader lines = Streams.Reader(0);
        TextWriter output = Streams.Writer(1);
        string package = Rsa.Packages[0];
        try
        {
            var task = new WorkTask(lines.ReadLine());
            package = task.Package;
            Answer(task, lines, output);
        }
        catch (Exception error)
        {
            // A refusal has its outcome; anything else that is thrown should have worked.
            var refusal = error as Refusal;
            Say(output, new Dictionary<string, object>
            {
                ["outcome"] = refusal != null ? refusal.Outcome : "failed",
                ["reason"] = (refusal != null ? "" : error.GetType().Name + ": ") + error.Message.Replace("\n", " "),
                ["receipt"] = Receipt(package),
            });
        }
        return 0;
    }

    static void Answer(WorkTask task, TextReader lines, TextWriter output)
    {
        var receipt = Receipt(task.Package);
        if (task.Mode == "list")
        {
            Say(output, new Dictionary<string, object> { ["outcome"] = "ok", ["receipt"] = receipt, ["offers"] = Offers(task.Package) });
            return;
        }
        var operation = Prepare(task);
        switch (task.Mode)
        {
            case "verify":
                var proof = new Proof();
                operation.Perform();
                operation.Prove(proof);
                if (proof.Answer == null && task.Input("expected_hex") != null)
                {
                    throw Refusal.Failed("the known answer was not tested, because inputs are missing");
                }
                Say(output, new Dictionary<string, object> { ["outcome"] = "ok", ["receipt"] = receipt, ["proof"] = proof.Line() });
                break;
            case "measure":
                new Session(operation).Run(lines, output, receipt);
                Say(output, new Dictionary<string, object> { ["outcome"] = "ok" });
                break;
            default:
                throw Refusal.Failed($"the mode must be list, verify or measure, and is {task.Mode}");
        }
    }

    /// <summary>Returns the operation of a task, and fails if it does not read all settings of the task.</summary>
    static IOperation Prepare(WorkTask task)
    {
        if (!Families.TryGetValue(task.Family, out Family family))
        {
            throw Refusal.Unsupported($"this runner does not support the family {task.Family}");
        }
        if (Array.IndexOf(family.Operations, task.Op) < 0 || Array.IndexOf(family.Choices, task.Choice) < 0)
        {
            throw task.Without($"this runner has {string.Join(", ", family.Choices)} ({string.Join(", ", family.Operations)})");
        }
        var operation = family.Prepare(task);
        task.Settled();
        if (!Has(task.Package, task.Family, task.Choice))
        {
            throw task.Without($"{Rsa.ClassOf(task.Package)} is a class for RSA alone");
        }
        return operation;
    }

    /// <summary>The first package stands for the platform; the others are classes for RSA.</summary>
    static bool Has(string package, string family, string choice)
    {
        bool isOffered = choice != "key-from-store" || Rsa.HasStore(package);
        return choice == "none" || (isOffered && (family == "rsa-api" || package == Rsa.Packages[0]));
    }

    static List<object> Offers(string package)
    {
        var offers = new List<object>();
        foreach (var family in Families)
        {
            foreach (var choice in family.Value.Choices)
            {
                if (Has(package, family.Key, choice))
                {
                    offers.Add(new Dictionary<string, object> { ["family"] = family.Key, ["choice"] = choice });
                }
            }
        }
        return offers;
    }

    static Dictionary<string, object> Receipt(string package)
    {
        string openssl = OpenSslVersion(), version = Environment.Version.ToString();
        return new Dictionary<string, object>
        {
            ["provider"] = $"{RuntimeInformation.FrameworkDescription} {Rsa.ClassOf(package)} on OpenSSL {openssl}",
            ["name"] = $"dotnet {package} {version}",
            ["parts"] = new Dictionary<string, object>
            {
                ["backend"] = $"OpenSSL {openssl}, called through the runtime's native shim",
                ["runtime"] = $"{RuntimeInformation.FrameworkDescription}, {RuntimeInformation.OSArchitecture}",
                ["tiered compilation"] = Flag("TieredCompilation", "its default"),
                ["delay of the second tier"] = Flag("TC_CallCountingDelayMs", "its default"),
                ["tiered PGO"] = Flag("TieredPGO", "its default"),
                ["ready to run"] = Flag("ReadyToRun", "its default: the framework's own code is compiled beforehand"),
                ["collector"] = $"{(GCSettings.IsServerGC ? "server" : "workstation")}, {GCSettings.LatencyMode}",
                ["digest"] = Rsa.DigestOf(package),
                ["key-from-der"] = package == "rsa-csp" ? "ImportCspBlob: the class's own encoded form" : "ImportPkcs8PrivateKey",
            },
        };
    }

    /// <summary>A knob of the runtime, which is set by either of two variables.</summary>
    static string Flag(string name, string otherwise)
    {
        return Environment.GetEnvironmentVariable("DOTNET_" + name) ?? Environment.GetEnvironmentVariable("COMPlus_" + name) ?? otherwise;
    }

    /// <summary>OPENSSL_VERSION_NUMBER as text: 1.1.1k is 0x101010bf, 3.0.19 is 0x30000130.</summary>
    static string OpenSslVersion()
    {
        long number = SafeEvpPKeyHandle.OpenSslVersion;
        long major = number >> 28, minor = number >> 20 & 0xff, fix = number >> 12 & 0xff, patch = number >> 4 & 0xff;
        if (major >= 3)
        {
            return $"{major}.{minor}.{patch}";
        }
        return $"{major}.{minor}.{fix}{(patch > 0 ? ((char)('a' + patch - 1)).ToString() : "")}";
    }

    public static void Say(TextWriter output, Dictionary<string, object> line)
    {
        try
        {
            output.WriteLine(JsonSerializer.Serialize(line));
        }
        catch (IOException)
        {
            // Nothing reads what this runner says.
            Environment.Exit(1);
        }
    }
}
