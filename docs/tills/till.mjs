// A whole till in JavaScript: Node 18 or newer; in a browser the same, with the address listed in `allowed_origins`.
//
// MCFD_URL=https://mcfd.local:8480 MCFD_KEY=ak_live_… MCFD_NIM=EL02000015-1 NODE_EXTRA_CA_CERTS=mcfd-ca.pem node till.mjs F-1001
// Without MCFD_URL the box is looked for on the shop's network (Node only: a browser cannot).

const { MCFD_URL, MCFD_KEY, MCFD_NIM, MCFD_TEST } = process.env;
const FIXED = "https://mcfd.local:8480"; // where no box announces itself
const PATIENCE = 120_000; // milliseconds that the customer waits at the most
const AGAIN = [408, 429, 502, 503, 504, 507];
// 502 and 503, but waiting does not help
const FOR_A_PERSON = ["MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "BOX_AMBIGUOUS", "BRIDGE_ERROR"];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The address of the box that announces itself as _mcfd._tcp (docs/network.md): one question by multicast DNS. Its certificate proves that it is
// the shop's, so that only https is of use here.
async function findBox() {
  const { createSocket } = await import("node:dgram");
  const question = Buffer.from("\0\0\0\0\0\x01\0\0\0\0\0\0\x05_mcfd\x04_tcp\x05local\0\0\x0c\0\x01", "latin1");
  const asked = createSocket("udp4");
  const found = new Promise((resolve) => {
    asked.on("error", () => {}); // there is no network
    asked.on("message", (answer, { address }) => {
      const service = answer.toString("latin1").match(/\0\x21\0\x01[^]{6}\0{4}([^])([^])/); // SRV: its port
      if (service) resolve(`https://${address}:${service[1].charCodeAt() * 256 + service[2].charCodeAt()}`);
    });
  });
  try {
    for (let tries = 0; tries < 3; tries++) {
      asked.send(question, 5353, "224.0.0.251");
      const url = await Promise.race([found, sleep(1000)]);
      if (url) return url;
    }
    return FIXED;
  } finally {
    asked.close();
  }
}

const BASE = `${MCFD_URL || (await findBox())}/v1/mcf/${MCFD_NIM}`;

// The answer as text. Until there is one, the same request with the same key: it is certified at most once.
async function call(method, path, body, key) {
  const headers = { Authorization: `Bearer ${MCFD_KEY}`, "Accept-Language": "fr" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (path === "/certify" && MCFD_TEST) headers["Mcfd-Test"] = MCFD_TEST; // with a test key: docs/testing-your-till.md
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    let wait = 2000;
    try {
      const answer = await fetch(BASE + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(PATIENCE),
      });
      const text = await answer.text();
      if (answer.ok) return text;
      const problem = JSON.parse(text);
      if (!AGAIN.includes(answer.status) || FOR_A_PERSON.includes(problem.code))
        throw new RangeError(`${problem.code}: ${problem.detail}`);
      wait = 1000 * (Number(answer.headers.get("Retry-After")) || 2);
    } catch (error) {
      if (error instanceof RangeError) throw error; // what was sent has to be corrected
      // otherwise the box restarts, the cable is out, or a proxy answers: nothing is known, so the same again
    }
    if (Date.now() + wait > deadline) throw new Error("no answer yet; send the same invoice again with the same key");
    await sleep(wait);
  }
}

async function certify(path, invoice) {
  const receipt = JSON.parse(await call("POST", path, invoice, `till1-${invoice.invoiceNumber}`));
  for (const warning of receipt.warnings) console.error("warning:", warning.message);
  return receipt;
}

const number = process.argv[2];
const sale = {
  invoiceNumber: number,
  invoiceType: "FV",
  operatorId: "7",
  operatorName: "Awa",
  customer: { clientType: "CC" },
  items: [
    { name: "Riz 25 kg", code: "R25", taxGroup: "B", unitPrice: 15000, quantity: 2 },
    { name: "Pain", taxGroup: "A", unitPrice: 150, quantity: 4 },
  ],
  payments: [
    { method: "E", amount: 30000 },
    { method: "M", amount: 600 },
  ],
};
const receipt = await certify("/certify", sale);
console.log("certified", number, receipt.codeSecef, receipt.totalTtc);
console.log(await call("GET", `/certifications/${receipt.codeSecef}/ticket?width=42`));

const credit = {
  invoiceNumber: `${number}-A`,
  invoiceType: "FA",
  creditNoteNature: "RAM",
  creditNoteRef: `${receipt.nim}-${receipt.fvc}`,
  items: [sale.items[1]],
  payments: [{ method: "E", amount: 600 }],
};
console.log("credited", (await certify("/credit-note", credit)).codeSecef);

const closure = JSON.parse(await call("POST", "/reports/z", {}, `z-after-${number}`));
console.log("closed Z", closure.z_number, closure.total_ttc);
