// A whole till in C#, without any package: .NET 6 and newer, or Mono (mcs -r:System.Net.Http -r:System.Runtime.Serialization till.cs).
//
// MCFD_URL=https://mcfd.local:8480 MCFD_KEY=ak_live_… MCFD_NIM=EL02000015-1 till.exe F-1001     (the box's certificate: in the system's store)
// Without MCFD_URL the box is looked for on the shop's network.

using System;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Runtime.Serialization;
using System.Runtime.Serialization.Json;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

[DataContract] class Warning { [DataMember] public string message; }

[DataContract] class Receipt
{
    [DataMember] public string codeSecef, nim;
    [DataMember] public long totalTtc, fvc;
    [DataMember] public Warning[] warnings;
}

[DataContract] class Closure { [DataMember] public long z_number, total_ttc; }

[DataContract] class Problem { [DataMember] public string code, detail; }

class Refused : Exception { public Refused(string text) : base(text) { } } // what was sent has to be corrected

static class Till
{
    const int Patience = 120; // seconds that the customer waits at the most
    const string Fixed = "https://mcfd.local:8480"; // where no box announces itself
    static readonly string Base = (Environment.GetEnvironmentVariable("MCFD_URL") ?? FindBox()) + "/v1/mcf/" + Environment.GetEnvironmentVariable("MCFD_NIM");
    static readonly string Rehearsed = Environment.GetEnvironmentVariable("MCFD_TEST"); // with a test key: docs/testing-your-till.md
    static readonly int[] Again = { 408, 429, 502, 503, 504, 507 };
    static readonly string[] ForAPerson = { "MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "BOX_AMBIGUOUS", "BRIDGE_ERROR" }; // 502 and 503, but waiting does not help
    static readonly HttpClient Http = new HttpClient { Timeout = TimeSpan.FromSeconds(Patience) };

    // The address of the box that announces itself as _mcfd._tcp (docs/network.md): one question by multicast DNS. Its certificate proves that it
    // is the shop's, so that only https is of use here.
    static string FindBox()
    {
        var question = Encoding.ASCII.GetBytes("\0\0\0\0\0\x0001\0\0\0\0\0\0\x0005_mcfd\x0004_tcp\x0005local\0\0\x000c\0\x0001");
        using (var asked = new UdpClient(0))
        {
            asked.Client.ReceiveTimeout = 1000;
            for (var tries = 0; tries < 3; tries++)
            {
                try
                {
                    asked.Send(question, question.Length, "224.0.0.251", 5353);
                    var peer = new IPEndPoint(IPAddress.Any, 0);
                    var answer = Encoding.GetEncoding("iso-8859-1").GetString(asked.Receive(ref peer));
                    var service = Regex.Match(answer, @"\x00\x21\x00\x01.{6}\x00{4}(.)(.)", RegexOptions.Singleline); // SRV: its port
                    if (service.Success) return "https://" + peer.Address + ":" + (service.Groups[1].Value[0] * 256 + service.Groups[2].Value[0]);
                }
                catch (SocketException) { } // no answer, or no network
            }
        }
        return Fixed;
    }

    // The answer as text. Until there is one, the same request with the same key: it is certified at most once.
    static string Call(HttpMethod method, string path, string body = null, string key = null)
    {
        var deadline = DateTime.UtcNow.AddSeconds(Patience);
        while (true)
        {
            var wait = 2;
            try
            {
                var request = new HttpRequestMessage(method, Base + path);
                request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", Environment.GetEnvironmentVariable("MCFD_KEY"));
                request.Headers.Add("Accept-Language", "fr");
                if (key != null) request.Headers.Add("Idempotency-Key", key);
                if (path == "/certify" && Rehearsed != null) request.Headers.Add("Mcfd-Test", Rehearsed);
                if (body != null) request.Content = new StringContent(body, Encoding.UTF8, "application/json");
                var answer = Http.SendAsync(request).Result;
                var text = answer.Content.ReadAsStringAsync().Result;
                if (answer.IsSuccessStatusCode) return text;
                var status = (int)answer.StatusCode;
                var problem = Read<Problem>(text);
                if (problem != null && (Array.IndexOf(Again, status) < 0 || Array.IndexOf(ForAPerson, problem.code) >= 0))
                    throw new Refused(problem.code + ": " + problem.detail);
                var after = answer.Headers.RetryAfter;
                if (after != null && after.Delta.HasValue) wait = (int)after.Delta.Value.TotalSeconds;
            }
            catch (AggregateException) { } // the box restarts or the cable is out: nothing is known, so the same again
            catch (SerializationException) { } // no answer of the box: the same again
            if (DateTime.UtcNow.AddSeconds(wait) > deadline)
                throw new TimeoutException("no answer yet; send the same invoice again with the same key");
            Thread.Sleep(wait * 1000);
        }
    }

    static T Read<T>(string json)
    {
        using (var stream = new MemoryStream(Encoding.UTF8.GetBytes(json)))
            return (T)new DataContractJsonSerializer(typeof(T)).ReadObject(stream);
    }

    static Receipt Certify(string path, string number, string invoice)
    {
        var receipt = Read<Receipt>(Call(HttpMethod.Post, path, invoice, "till1-" + number));
        foreach (var warning in receipt.warnings) Console.Error.WriteLine("warning: " + warning.message);
        return receipt;
    }

    static void Main(string[] arguments)
    {
        var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true };
        Console.SetOut(output);
        var number = arguments[0];
        var bread = @"{""name"": ""Pain"", ""taxGroup"": ""A"", ""unitPrice"": 150, ""quantity"": 4}";
        var sale = @"{""invoiceNumber"": """ + number + @""", ""invoiceType"": ""FV"", ""operatorId"": ""7"", ""operatorName"": ""Awa"",
            ""customer"": {""clientType"": ""CC""},
            ""items"": [{""name"": ""Riz 25 kg"", ""code"": ""R25"", ""taxGroup"": ""B"", ""unitPrice"": 15000, ""quantity"": 2}, " + bread + @"],
            ""payments"": [{""method"": ""E"", ""amount"": 30000}, {""method"": ""M"", ""amount"": 600}]}";
        var receipt = Certify("/certify", number, sale);
        Console.WriteLine("certified " + number + " " + receipt.codeSecef + " " + receipt.totalTtc);
        Console.WriteLine(Call(HttpMethod.Get, "/certifications/" + receipt.codeSecef + "/ticket?width=42"));

        var credit = @"{""invoiceNumber"": """ + number + @"-A"", ""invoiceType"": ""FA"", ""creditNoteNature"": ""RAM"",
            ""creditNoteRef"": """ + receipt.nim + "-" + receipt.fvc + @""", ""items"": [" + bread + @"],
            ""payments"": [{""method"": ""E"", ""amount"": 600}]}";
        Console.WriteLine("credited " + Certify("/credit-note", number + "-A", credit).codeSecef);

        var closure = Read<Closure>(Call(HttpMethod.Post, "/reports/z", "{}", "z-after-" + number));
        Console.WriteLine("closed Z " + closure.z_number + " " + closure.total_ttc);
    }
}
