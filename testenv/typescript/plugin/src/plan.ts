// Compares the desired files with the current ones. Plan and Apply both call it, so that they cannot differ (SPEC P-21).
import { createHmac } from 'node:crypto';
import { createTwoFilesPatch } from 'diff';
import type { Change } from '../build/types/machineadm/plugin/v1/Change';
import type { Claim } from '../build/types/machineadm/plugin/v1/Claim';
import type { Spec } from './document';
import { read, write, type Found } from './files';

const tokenPath = '/etc/acme-agent/token';

interface File {
  path: string;
  content: Buffer;
  mode: number;
  field: string;
}

export interface Step {
  change: Change & { id: string };
  make(): Promise<void>;
}

/** The files of the document, in the order in which they are written: the settings name the token. */
export function desired(spec: Spec): File[] {
  const settings = {
    endpoint: spec.endpoint,
    tokenFile: tokenPath,
    intervalSeconds: spec.intervalSeconds ?? 60,
    labels: Object.fromEntries(Object.entries(spec.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  return [
    { path: tokenPath, content: Buffer.from(`${spec.token.value}\n`), mode: 0o600, field: 'spec.token' },
    { path: '/etc/acme-agent/agent.json', content: Buffer.from(`${JSON.stringify(settings, null, 2)}\n`), mode: 0o644, field: '' },
  ];
}

/** The claims of SPEC P-32. */
export function claims(files: File[], key: Buffer): Claim[] {
  if (key.length === 0) return [];
  return files.map(({ path, content, mode, field }) => ({
    id: `file:${path}`,
    field,
    digest: digest(key, [content, Buffer.from(mode.toString(8).padStart(4, '0')), Buffer.from('')]),
  }));
}

/** The digest of SPEC P-33. */
export function digest(key: Buffer, parts: Buffer[]): Buffer {
  const hmac = createHmac('sha256', key);
  for (const part of parts) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(part.length));
    hmac.update(length).update(part);
  }
  return hmac.digest();
}

/** The changes that are missing, in the order in which Apply makes them. */
export async function missing(root: string, files: File[]): Promise<Step[]> {
  const steps: Step[] = [];
  for (const file of files) {
    const found = await read(root, file.path);
    const same = found?.content.equals(file.content);
    if (same && found!.mode === file.mode && found!.uid === process.geteuid!()) continue;
    const verb = !found ? 'create' : same ? 'set mode and owner of' : 'replace';
    steps.push({
      change: { id: `file:${file.path}`, summary: `${verb} ${file.path}`, diff: diff(file, found), reboot: 'REBOOT_NONE' },
      make: () => write(root, file.path, file.content, file.mode),
    });
  }
  return steps;
}

/** A unified diff, unless one side is confidential (SPEC P-20). */
function diff(file: File, found: Found | undefined): string {
  const readable = 0o004;
  if (!(file.mode & readable) || (found && !(found.mode & readable))) return 'content differs';
  const [old, text] = [found?.content.toString() ?? '', file.content.toString()];
  if (found && (old === text || !Buffer.from(old).equals(found.content))) return old === text ? '' : 'content differs';
  const patch = createTwoFilesPatch(found ? `a${file.path}` : '/dev/null', `b${file.path}`, old, text);
  return patch.slice(patch.indexOf('---'));
}
