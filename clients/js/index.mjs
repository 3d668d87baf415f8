// Certify invoices through mcfd: one request, repeated with the same key until there is an answer. Node 18 or newer, or a browser. See README.md.

const AGAIN = new Set([408, 410, 429, 502, 503, 504, 507]);
const ONCE_MORE = new Set(["BRIDGE_ERROR", "INTERNAL_ERROR"]); // repeated once, then for a person
const FOR_A_PERSON = new Set([
  ...["MACHINE_ATTENTION", "PAIR_NOT_COMPARED", "LEDGER_DAMAGED", "Z_NUMBER_UNKNOWN", "BOX_AMBIGUOUS"],
  ...ONCE_MORE,
]);
const LOST = new Set(["GATEWAY_TIMEOUT", "OUTCOME_UNKNOWN"]); // it may be certified
const WAIT = 2; // seconds, where the answer does not say
const TAKEN_BACK = { code: "TAKEN_BACK", status: 409, detail: "the sale was accepted for later, and taken back since" };

/** Root of all errors. What a retry solves is none. */
export class McfError extends Error {}

/** Not known yet within the client's patience. Send the same again later with the same `key`: it is certified at most once. */
export class NoAnswer extends McfError {
  constructor(key, last) {
    super(`no answer yet (${last}); send the same again with the key "${key}"`);
    this.key = key;
  }
}

/** mcfd said no; `problem` has its `code`, its `detail` for the screen, and `errors` with the fields. */
export class Answered extends McfError {
  constructor(problem) {
    super(`${problem.code}: ${problem.detail}`);
    this.problem = problem;
    this.code = problem.code;
  }
}

/** Stop selling, and call who looks after the box. */
export class NeedsAPerson extends Answered {}
/** Another key is needed. */
export class NotAllowed extends Answered {}
/** The request has to be corrected, and sent with a new key. */
export class Refused extends Answered {}
export class InvalidRequest extends Refused {}
/** In the machine's own words. */
export class MachineRefused extends Refused {}
/** `problem.certification` is what the number stands for. */
export class DuplicateInvoice extends Refused {}
export class CreditExceedsOriginal extends Refused {}

const BY_CODE = {
  INVALID_REQUEST: InvalidRequest,
  MACHINE_REFUSED: MachineRefused,
  DUPLICATE_INVOICE: DuplicateInvoice,
  CREDIT_EXCEEDS_ORIGINAL: CreditExceedsOriginal,
};

function errorOf(problem, status) {
  if (FOR_A_PERSON.has(problem.code)) return new NeedsAPerson(problem);
  if (Object.hasOwn(BY_CODE, problem.code)) return new BY_CODE[problem.code](problem);
  if (status === 401 || status === 403) return new NotAllowed(problem);
  return status >= 500 ? new NeedsAPerson(problem) : new Refused(problem); // a code of a later mcfd
}

/** What is in between may answer without a problem. */
async function problemOf(answer) {
  const text = await answer.text();
  try {
    const problem = JSON.parse(text);
    if (typeof problem.code === "string") return problem;
  } catch {
    // judged by its status below
  }
  const code = { 502: "BAD_GATEWAY", 504: "GATEWAY_TIMEOUT" }[answer.status] ?? "UNKNOWN";
  return { code, status: answer.status, detail: text.slice(0, 200) };
}

const stateOf = (key) => `/requests/${encodeURIComponent(key)}`;

function retryAfter(answer) {
  const text = answer.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(text) ? Number(text) : WAIT;
}

const PRIVATE = "whsk_"; // a key that signs (RFC 9421, Ed25519): 32 bytes of it, and 32 of its public half
const PKCS8 = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]; // what stands before an Ed25519 key (RFC 8410)
const COVERED = ["content-digest", "content-type", "idempotency-key", "mcfd-not-after", "mcfd-test"];

const bytesOf = (text) => new TextEncoder().encode(text);
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

/** The key of `whsk_…`, and the id by which signatures name it. */
async function signingKey(text) {
  const bytes = Uint8Array.from(atob(text.slice(PRIVATE.length)), (character) => character.charCodeAt(0));
  const pkcs8 = new Uint8Array([...PKCS8, ...bytes.subarray(0, 32)]);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]);
  const id = [...(await sha256(bytes.subarray(32, 64))).subarray(0, 8)];
  return { key, id: id.map((byte) => byte.toString(16).padStart(2, "0")).join("") };
}

/** `headers` with those of a signature that counts for so many `seconds`: a later one is refused by the box (410), and sent again. */
async function signed({ key, id }, method, url, headers, body, seconds) {
  const until = new Date(Date.now() + seconds * 1000);
  const all = { ...headers, "mcfd-not-after": `${until.toISOString().slice(0, 19)}Z` };
  if (body !== undefined) all["content-digest"] = `sha-256=:${base64(await sha256(bytesOf(body)))}:`;
  const covered = [["@method", method], ["@path", url.pathname]];
  if (url.search) covered.push(["@query", url.search]);
  covered.push(...COVERED.filter((name) => name in all).map((name) => [name, all[name]]));
  const names = covered.map(([name]) => `"${name}"`).join(" ");
  const parameters = `(${names});created=${Math.floor(Date.now() / 1000)};keyid="${id}";alg="ed25519"`;
  const lines = [...covered.map(([name, value]) => `"${name}": ${value}`), `"@signature-params": ${parameters}`];
  const signature = await crypto.subtle.sign("Ed25519", key, bytesOf(lines.join("\n")));
  return { ...all, "signature-input": `mcf=${parameters}`, signature: `mcf=:${base64(signature)}:` };
}

/** One till at one machine. */
export class Mcf {
  #base;
  #headers;
  #options;
  #signingKey = null;

  /** `till` begins each key, so that no two tills of a shop use the same one. `patience` and `timeout` in seconds: of a call, and of one try of it.
   * A `key` that signs (`whsk_…`, through the relay) is not sent. */
  constructor({ url, key, nim, till, patience = 120, timeout = 60, language = "fr", test = "" }) {
    for (const [name, value] of Object.entries({ url, key, nim, till })) {
      if (!value) throw new TypeError(`${name} is needed`);
    }
    this.#base = `${url.replace(/\/+$/, "")}/v1/mcf/${nim}`;
    this.#headers = { "accept-language": language };
    if (key.startsWith(PRIVATE)) this.#signingKey = signingKey(key);
    else this.#headers.authorization = `Bearer ${key}`;
    this.#signingKey?.catch(() => {}); // the first signature reports it
    this.#options = { till, patience, timeout, test };
  }

  /** The receipt, and the same one at each repetition. The key is made of the invoice's number. */
  certify(invoice, key) {
    return this.#receipt("/certify", invoice, key);
  }

  /** As `certify`; the tax server checks it, which may take a minute. */
  creditNote(credit, key) {
    return this.#receipt("/credit-note", credit, key);
  }

  /** The totals and warnings that it would get; nothing is certified. */
  async preview(invoice) {
    const path = ["FA", "EA"].includes(invoice.invoiceType) ? "/credit-note" : "/certify";
    const key = `${this.#options.till}-preview-${Math.random().toString(36).slice(2)}`; // the relay wants one with each POST
    return (await this.#send("POST", `${path}?dry_run=true`, invoice, key)).json();
  }

  /** What became of the request with that key; null for one that is not known. */
  async findRequest(key) {
    try {
      return await (await this.#send("GET", stateOf(key))).json();
    } catch (error) {
      if (error instanceof Refused && error.code === "NOT_FOUND") return null;
      throw error;
    }
  }

  /** Z. The key is the till's name for this closing, as its date: pressed again, it is the same Z. */
  async closePeriod(key) {
    return (await this.#send("POST", "/reports/z", {}, `${this.#options.till}-z-${key}`)).json();
  }

  /** `deposit` or `withdrawal`. */
  async moveCash(kind, amount, reason, key) {
    return (await this.#send("POST", "/cash", { kind, amount, reason }, `${this.#options.till}-cash-${key}`)).json();
  }

  async ticket(code, width = 42) {
    return (await this.#send("GET", `/certifications/${code}/ticket?width=${width}`)).text();
  }

  /** Any other reading: `info`, `reports/x`, `certifications`. */
  async get(path, query = {}) {
    const search = String(new URLSearchParams(query));
    return (await this.#send("GET", search ? `/${path}?${search}` : `/${path}`)).json();
  }

  async #receipt(path, invoice, given) {
    const key = given ?? this.#keyOf(path, invoice);
    const answer = await this.#send("POST", path, invoice, key);
    return answer.status === 202 ? this.#later(key) : answer.json();
  }

  /** Accepted, and certified when the machine is back. */
  async #later(key) {
    const deadline = this.#deadline();
    for (;;) {
      const found = await this.#look(key);
      if (found?.receipt) return found.receipt;
      if (found?.problem) throw errorOf(found.problem, found.problem.status);
      await this.#wait(WAIT, deadline, key, "accepted, and not certified yet");
    }
  }

  #keyOf(path, invoice) {
    if (!invoice.invoiceNumber) throw new TypeError("an invoice without a number needs a key of its own");
    return `${this.#options.till}${path.replaceAll("/", "-")}-${invoice.invoiceNumber}`;
  }

  async #send(method, path, body, key = "") {
    await this.#signingKey; // an engine without Ed25519, or what is no key, is not solved by a retry
    const deadline = this.#deadline();
    let onceMore = true;
    for (;;) {
      let [wait, last, isLost] = [WAIT, "no connection", true];
      let answer = null;
      try {
        answer = await this.#try(method, path, body, key);
        if (answer.ok) return answer;
      } catch (error) {
        if (error instanceof TypeError && !isNetwork(error)) throw error; // a header or an address that cannot be sent
        answer = null;
      }
      if (answer !== null) {
        const problem = await problemOf(answer);
        const isMended = AGAIN.has(answer.status) && !FOR_A_PERSON.has(problem.code);
        if (!isMended && !(onceMore && ONCE_MORE.has(problem.code))) throw errorOf(problem, answer.status);
        onceMore = onceMore && !ONCE_MORE.has(problem.code);
        last = `${problem.code}: ${problem.detail}`;
        [wait, isLost] = [retryAfter(answer), LOST.has(problem.code)];
      }
      await this.#wait(wait, deadline, key, last);
      const found = isLost && key && (path === "/certify" || path === "/credit-note") ? await this.#look(key) : null;
      if (found?.receipt) return Response.json(found.receipt); // otherwise the same request is sent again, which is as safe
    }
  }

  /** As `findRequest`, once: whatever is no answer to that says nothing of the request, which may well be certified. Refused for a sale that somebody
   * has taken back: sent again, it would be certified. */
  async #look(key) {
    let found = null;
    try {
      const answer = await this.#try("GET", stateOf(key));
      if (answer.ok) found = await answer.json();
    } catch {
      return null;
    }
    if (found?.status === "abandoned" && !found.problem) throw new Refused(TAKEN_BACK);
    return found;
  }

  async #try(method, path, body, key) {
    const { test, timeout } = this.#options;
    const url = new URL(this.#base + path);
    const content = body === undefined ? undefined : JSON.stringify(body);
    let headers = { ...this.#headers };
    if (content !== undefined) headers["content-type"] = "application/json";
    if (key) headers["idempotency-key"] = key;
    if (test && method === "POST") headers["mcfd-test"] = test;
    if (this.#signingKey) headers = await signed(await this.#signingKey, method, url, headers, content, timeout);
    const answer = await fetch(url, {
      method,
      headers,
      body: content,
      signal: AbortSignal.timeout(timeout * 1000),
    });
    const whole = await answer.arrayBuffer(); // an answer that breaks off is none
    return new Response(whole, { status: answer.status, headers: answer.headers });
  }

  #deadline() {
    return Date.now() + this.#options.patience * 1000;
  }

  async #wait(seconds, deadline, key, last) {
    if (Date.now() + seconds * 1000 > deadline) throw new NoAnswer(key, last);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

/** fetch says a lost connection with a TypeError, in each engine with other words. */
function isNetwork(error) {
  return error.cause !== undefined || /fetch|network|load failed|terminated/i.test(error.message);
}
