// A till on a client that @hey-api/openapi-ts generated: compiled strictly, and run.

import { createClient } from "./out/client/index.js";
import {
  certifyCreditNote,
  certifyInvoice,
  closePeriod,
  getMachineInfo,
  getRequest,
  withdrawRequest,
  type CertifyBody,
  type CreditNoteBody,
  type Problem,
  type Receipt,
  type RequestOutcome,
} from "./out/index.js";

declare const process: { argv: string[] };

const [url, token, nim] = process.argv.slice(2) as [string, string, string];
const client = createClient({ baseUrl: url, auth: token });
const path = { nim };
const SALE: CertifyBody = {
  invoiceNumber: "G-1",
  invoiceType: "FV",
  items: [{ name: "Riz", taxGroup: "B", unitPrice: 15000 }],
  payments: [{ method: "E", amount: 15000 }],
};

async function certify(key: string, changes: Partial<CertifyBody> = {}, test?: string): Promise<Receipt | Problem> {
  const headers = { "Idempotency-Key": key, ...(test === undefined ? {} : { "Mcfd-Test": test }) };
  const { data, error } = await certifyInvoice({ client, path, headers, body: { ...SALE, ...changes } });
  if (error !== undefined) return error;
  if ("codeSecef" in data) return data;
  throw new Error("neither a preview nor a certification for later was asked for");
}

function problem(answer: Receipt | Problem): Problem {
  if ("codeSecef" in answer) throw new Error("certified");
  return answer;
}

const first = await certify("k-1");
const again = await certify("k-1");
if (!("codeSecef" in first && "codeSecef" in again) || first.codeSecef !== again.codeSecef) throw new Error(JSON.stringify(first));
const dry = await certifyInvoice({
  client,
  path,
  query: { dry_run: "true" },
  headers: { "Idempotency-Key": "k-9" },
  body: { ...SALE, invoiceNumber: "G-9" },
});
if (dry.data === undefined || "codeSecef" in dry.data) throw new Error("no preview");
const duplicate = problem(await certify("k-2"));
const invalid = problem(await certify("k-3", { invoiceNumber: "G-3", payments: [] }));
const offline = problem(await certify("k-4", { invoiceNumber: "G-4" }, "offline:1"));

// A sale while the machine is away, that is not waited for: what is said of it at once.
async function acceptForLater(number: string): Promise<RequestOutcome> {
  const { data, error } = await certifyInvoice({
    client,
    path,
    headers: { "Idempotency-Key": `k-${number}`, "Mcfd-Test": "late:1", Prefer: "respond-async" },
    body: { ...SALE, invoiceNumber: number },
  });
  if (data === undefined || !("status" in data)) throw new Error(JSON.stringify(data ?? error));
  return data;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const accepted = await acceptForLater("G-7");
let ended: RequestOutcome | undefined;
while (!ended?.receipt) {
  await sleep(200);
  ended = (await getRequest({ client, path: { nim, key: "k-G-7" }, throwOnError: true })).data;
}
await acceptForLater("G-8");
const takenBack = await withdrawRequest({ client, path: { nim, key: "k-G-8" }, throwOnError: true });
const credit: CreditNoteBody = {
  ...SALE,
  invoiceNumber: "G-5",
  invoiceType: "FA",
  originalInvoiceNumber: "G-1",
  creditNoteNature: "RAM",
};
for (;;) {
  const { error } = await certifyCreditNote({ client, path, headers: { "Idempotency-Key": "k-5" }, body: credit });
  if (error === undefined) break;
  if (error.code !== "BRIDGE_OFFLINE") throw new Error(error.detail);
  await sleep(200);
}
const found = await getRequest({ client, path: { nim, key: "k-1" } });
const unknown = await getRequest({ client, path: { nim, key: "never" } });
const closure = await closePeriod({ client, path, headers: { "Idempotency-Key": "z-1" }, body: {} });
const info = await getMachineInfo({ client, path });
const wrong = await getMachineInfo({ client: createClient({ baseUrl: url, auth: "wrong" }), path });
console.log(
  JSON.stringify({
    duplicate: duplicate.code,
    invalid: [invalid.code, invalid.errors?.[0]?.field],
    offline: offline.code,
    accepted: accepted.status,
    certified_later: ended.receipt.invoiceNumber,
    taken_back: takenBack.data.status,
    found: found.data?.status,
    unknown: unknown.error?.code,
    z: closure.data?.z_number,
    nim: info.data?.nim,
    wrong: wrong.error?.code,
    later: "OF_A_LATER_VERSION" satisfies Problem["code"],
  }),
);
