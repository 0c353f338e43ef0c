using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;
using System.Text.Json;

/// <summary>Reason for a missing result: `unsupported` by this provider, or `failed` although it should succeed.</summary>
sealed class Refusal : Exception
{
    public string Outcome { get; }

    Refusal(string outcome, string reason) : base(reason)
    {
        Outcome = outcome;
    }

    public static Refusal Failed(string reason) => new Refusal("failed", reason);

    public static Refusal Unsupported(string reason) => new Refusal("unsupported", reason);
}

/// <summary>First line of input: the work to perform. A setting that is read is removed, so that the rest is unread.</summary>
sealed class WorkTask
{
    const int MostBytes = 1 << 30;

    readonly Dictionary<string, JsonElement> settings = new Dictionary<string, JsonElement>();
    readonly Dictionary<string, string> inputs = new Dictionary<string, string>();

    public string Mode { get; }
    public string Family { get; }
    public string Op { get; }
    public string Choice { get; }
    public string Package { get; }
    public ulong Seed { get; }

    public WorkTask(string line)
    {
        JsonElement task;
        try
        {
            task = JsonDocument.Parse(line ?? "").RootElement;
        }
        catch (JsonException error)
        {
            throw Refusal.Failed($"the first line is not a task: {error.Message}");
        }
        if (task.ValueKind != JsonValueKind.Object)
        {
            throw Refusal.Failed("the first line is not a task: a JSON object is expected");
        }
        if (!task.TryGetProperty("contract", out JsonElement contract) || contract.GetRawText() != "2")
        {
            throw Refusal.Failed("the task has another contract, and this runner supports contract 2");
        }
        Mode = Text(task, "mode");
        Family = Text(task, "family");
        Op = Text(task, "op");
        Choice = Text(task, "choice");
        Seed = task.TryGetProperty("seed", out JsonElement seed) ? seed.GetUInt64() : 0;
        Package = task.TryGetProperty("provider", out JsonElement provider) ? Text(provider, "package") : "";
        if (Package == "")
        {
            Package = Rsa.Packages[0];
        }
        if (Array.IndexOf(Rsa.Packages, Package) < 0)
        {
            string wanted = Package;
            Package = Rsa.Packages[0];
            throw Refusal.Unsupported($"the package must be one of {string.Join(", ", Rsa.Packages)}, and is {wanted}");
        }
        foreach (var one in Members(task, "setting"))
        {
            settings[one.Name] = one.Value;
        }
        foreach (var one in Members(task, "inputs"))
        {
            inputs[one.Name] = one.Value.GetString();
        }
        if (settings.TryGetValue("cpu", out JsonElement cpu) && cpu.ToString() != "native")
        {
            throw Refusal.Unsupported("this runner cannot switch processor features off");
        }
        settings.Remove("cpu");
    }

    /// <summary>Reads a setting that must be one of these words; the first is the default.</summary>
    public string Word(string name, params string[] words)
    {
        if (!settings.TryGetValue(name, out JsonElement given))
        {
            return words[0];
        }
        settings.Remove(name);
        if (given.ValueKind == JsonValueKind.String && Array.IndexOf(words, given.GetString()) >= 0)
        {
            return given.GetString();
        }
        throw Refusal.Failed($"the setting `{name}` must be {string.Join(" or ", words)}, and is {given}");
    }

    /// <summary>Reads the setting `bytes`: the size of the data of an operation.</summary>
    public int Bytes(int otherwise)
    {
        if (!settings.TryGetValue("bytes", out JsonElement given))
        {
            return otherwise;
        }
        settings.Remove("bytes");
        if (given.ValueKind == JsonValueKind.Number && given.TryGetInt32(out int bytes) && bytes >= 0 && bytes <= MostBytes)
        {
            return bytes;
        }
        throw Refusal.Failed($"the setting `bytes` must be a whole number up to {MostBytes}, and is {given}");
    }

    /// <summary>Fails if a setting was not read.</summary>
    public void Settled()
    {
        foreach (var name in settings.Keys)
        {
            throw Refusal.Failed($"the setting `{name}` is not read by `{Op}` of `{Choice}` ({Family})");
        }
    }

    public Refusal Without(string why) => Refusal.Unsupported($"this runner does not support `{Op}` of `{Choice}` ({Family}): {why}");

    /// <summary>Returns an input, or null.</summary>
    public string Input(string name) => inputs.TryGetValue(name, out string text) ? text : null;

    /// <summary>Returns an input in hexadecimal, or null.</summary>
    public byte[] Hex(string name)
    {
        string text = Input(name + "_hex");
        return text == null ? null : Data.FromHex(text);
    }

    /// <summary>Returns the message of the known answer, or null.</summary>
    public byte[] Message()
    {
        string text = Input("of");
        return Hex("of") ?? (text == null ? null : Encoding.UTF8.GetBytes(text));
    }

    static string Text(JsonElement parent, string name)
    {
        return parent.TryGetProperty(name, out JsonElement value) && value.ValueKind == JsonValueKind.String ? value.GetString() : "";
    }

    static IEnumerable<JsonProperty> Members(JsonElement parent, string name)
    {
        if (parent.TryGetProperty(name, out JsonElement value) && value.ValueKind == JsonValueKind.Object)
        {
            foreach (var one in value.EnumerateObject())
            {
                yield return one;
            }
        }
    }
}

/// <summary>Proof of an operation before it is timed.</summary>
sealed class Proof
{
    readonly List<string> accepted = new List<string>(), refused = new List<string>(), notTried = new List<string>();

    /// <summary>The answer to the known inputs; null if there are none.</summary>
    public byte[] Answer { get; set; }

    /// <summary>A randomised signature, for another implementation to verify.</summary>
    public Dictionary<string, object> Made { get; set; }

    public void Accept(string what, bool isAccepted)
    {
        if (!isAccepted)
        {
            throw Refusal.Failed($"not accepted: {what}");
        }
        accepted.Add(what);
    }

    public void Refuse(string what, bool isRefused)
    {
        if (!isRefused)
        {
            throw Refusal.Failed($"not refused: {what}");
        }
        refused.Add(what);
    }

    public void Leave(string what, string why) => notTried.Add($"{what}: {why}");

    public Dictionary<string, object> Line()
    {
        var line = new Dictionary<string, object>
        {
            ["answer"] = Answer == null ? null : Data.ToHex(Answer), ["accepted"] = accepted, ["refused"] = refused, ["not_tried"] = notTried,
        };
        if (Made != null)
        {
            line["made"] = Made;
        }
        return line;
    }
}

static class Data
{
    /// <summary>Returns pseudo-random bytes that depend only on the seed (SplitMix64, as in the engine).</summary>
    public static byte[] Filled(int count, ulong seed)
    {
        var data = new byte[count];
        for (int start = 0; start < count; start += 8)
        {
            seed += 0x9e3779b97f4a7c15;
            ulong z = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
            z = (z ^ z >> 27) * 0x94d049bb133111eb;
            z ^= z >> 31;
            for (int index = start; index < count && index < start + 8; index++, z >>= 8)
            {
                data[index] = (byte)z;
            }
        }
        return data;
    }

    /// <summary>Returns a copy with a bit of its last byte flipped; one zero byte for empty data.</summary>
    public static byte[] Tampered(byte[] data)
    {
        if (data.Length == 0)
        {
            return new byte[1];
        }
        var other = (byte[])data.Clone();
        other[other.Length - 1] ^= 1;
        return other;
    }

    public static bool Same(byte[] one, byte[] other) => ToHex(one) == ToHex(other);

    public static string ToHex(byte[] data) => BitConverter.ToString(data).Replace("-", "").ToLowerInvariant();

    public static byte[] FromHex(string text)
    {
        var data = new byte[text.Length / 2];
        for (int index = 0; index < data.Length; index++)
        {
            if (text.Length % 2 != 0 || !byte.TryParse(text.Substring(2 * index, 2), NumberStyles.HexNumber, null, out data[index]))
            {
                throw Refusal.Failed("an input that must be hexadecimal is not");
            }
        }
        return data;
    }
}
