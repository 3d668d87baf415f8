export interface Problem {
  code: string;
  status: number;
  detail: string;
  title?: string;
  request_id?: string;
  errors?: { field: string; message: string }[];
  certification?: Receipt;
  original_ttc?: number;
  credited_ttc?: number;
}
export interface Warned { code: string; message: string; item?: number; field?: string }
export interface TaxDetail { group: string; label: string; ht: number; tva: number; ttc: number }
export interface Receipt {
  codeSecef: string;
  invoiceNumber: string;
  invoiceType: string;
  totalTtc: number;
  nim: string;
  ifu: string;
  dateTime: string;
  qrContent: string;
  tc: number;
  fvc: number;
  frc: number;
  certifiedAt: string;
  counters?: string;
  taxDetails: TaxDetail[];
  warnings: Warned[];
}
export interface Preview { totalTtc: number; taxDetails: TaxDetail[]; warnings: Warned[] }
export interface RequestState { status: string; receipt?: Receipt; problem?: Problem }
/** As docs/integrate.md has it. */
export type Invoice = Record<string, unknown> & { invoiceNumber?: string; invoiceType: string };

export class McfError extends Error {}
export class NoAnswer extends McfError { readonly key: string }
export class Answered extends McfError { readonly problem: Problem; readonly code: string }
export class NeedsAPerson extends Answered {}
export class NotAllowed extends Answered {}
export class Refused extends Answered {}
export class InvalidRequest extends Refused {}
export class MachineRefused extends Refused {}
export class DuplicateInvoice extends Refused {}
export class CreditExceedsOriginal extends Refused {}

export class Mcf {
  constructor(options: {
    url: string;
    key: string;
    nim: string;
    till: string;
    patience?: number;
    timeout?: number;
    language?: string;
    test?: string;
  });
  certify(invoice: Invoice, key?: string): Promise<Receipt>;
  creditNote(credit: Invoice, key?: string): Promise<Receipt>;
  preview(invoice: Invoice): Promise<Preview>;
  findRequest(key: string): Promise<RequestState | null>;
  closePeriod(key: string): Promise<Record<string, unknown>>;
  moveCash(kind: "deposit" | "withdrawal", amount: number, reason: string, key: string): Promise<Record<string, unknown>>;
  ticket(code: string, width?: number): Promise<string>;
  get(path: string, query?: Record<string, string>): Promise<unknown>;
}
