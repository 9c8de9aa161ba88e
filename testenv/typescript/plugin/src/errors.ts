// The errors of SPEC section 10.
import { Metadata, status, type ServerErrorResponse } from '@grpc/grpc-js';
import type { ErrorDetail } from '../build/types/machineadm/plugin/v1/ErrorDetail';
import type { Violation } from '../build/types/machineadm/plugin/v1/Violation';
import { statusDetails } from './wire';

/** An answer with one of the five codes. */
export class Refusal extends Error {
  constructor(readonly detail: ErrorDetail) {
    super(detail.message);
  }
}

export const invalid = (violations: Violation[]) =>
  new Refusal({ code: 'CODE_INVALID_CONFIG', message: 'the document has errors', violations });

export const unsupported = (message: string) => new Refusal({ code: 'CODE_UNSUPPORTED', message });

export const precondition = (message: string, hint: string) => new Refusal({ code: 'CODE_PRECONDITION', message, hint });

// What an operator can correct: the disk, the mount, the permissions. Everything else is a defect of the plugin.
const operators = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO']);

/** The detail of any exception. The message of a foreign one is not repeated: it can quote a value (SPEC G-3). */
export function detailOf(error: unknown): ErrorDetail {
  if (error instanceof Refusal) return error.detail;
  const { name, code, stack } = error as NodeJS.ErrnoException;
  if (code && operators.has(code)) {
    return precondition(`the files below /etc/acme-agent cannot be read or written: ${code}`, 'free space, or make the directory writable').detail;
  }
  const place = stack?.match(/^ {4}at .*$/m)?.[0].trim() ?? 'an unknown place';
  log('error', 'defect of the plugin', { error: name, code, place });
  return { code: 'CODE_INTERNAL', message: `the plugin has a defect: ${name} ${code ?? ''} ${place}` };
}

const statuses = {
  CODE_INVALID_CONFIG: status.INVALID_ARGUMENT,
  CODE_UNSUPPORTED: status.UNIMPLEMENTED,
  CODE_PRECONDITION: status.FAILED_PRECONDITION,
  CODE_RETRY: status.UNAVAILABLE,
} as Record<string, status>;

/** The status of a call that fails, with the ErrorDetail in its trailer (SPEC E-1, E-2). */
export function statusOf(error: unknown): ServerErrorResponse {
  const detail = detailOf(error);
  const code = statuses[String(detail.code)] ?? status.INTERNAL;
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', statusDetails(code, detail));
  return { name: 'Error', message: detail.message!, code, details: detail.message, metadata };
}

/** One line of the log (SPEC G-27). */
export function log(level: 'info' | 'warn' | 'error', message: string, fields: object = {}): void {
  process.stderr.write(`${JSON.stringify({ '@level': level, '@message': message, '@timestamp': new Date().toISOString(), ...fields })}\n`);
}
