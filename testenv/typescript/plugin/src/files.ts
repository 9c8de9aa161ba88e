// Files below a root, without reading or writing anything outside of it, whatever its links say (SPEC P-16, G-15).
//
// Node.js has no openat(2). A path that begins with /proc/self/fd/N is resolved from the directory that N is open on,
// which has the same effect.
import { constants as c, type Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rename, unlink, type FileHandle } from 'node:fs/promises';
import { precondition } from './errors';

const mostLinks = 40;

export interface Found {
  content: Buffer;
  mode: number;
  uid: number;
}

interface Place {
  name: string;
  /** The path of a file in the same directory. */
  sibling(name: string): string;
  stat?: Stats;
  directory: FileHandle;
}

/** Calls use with the place of a file, whose last element is no link; undefined where a directory is missing and make is false. */
async function at<T>(root: string, path: string, make: boolean, use: (place: Place) => Promise<T>): Promise<T | undefined> {
  const opened = [await open(root || '/', c.O_RDONLY | c.O_DIRECTORY)];
  try {
    let links = 0;
    const rest = path.split('/');
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === '' || name === '.') continue;
      if (name === '..') {
        if (opened.length > 1) await opened.pop()!.close();
        continue;
      }
      const directory = opened.at(-1)!;
      const sibling = (s: string) => `/proc/self/fd/${directory.fd}/${s}`;
      const stat = await lstat(sibling(name)).catch(unless('ENOENT'));
      if (stat?.isSymbolicLink()) {
        if (++links > mostLinks) throw precondition(`${path}: too many links`, 'remove the links');
        const target = await readlink(sibling(name));
        while (target.startsWith('/') && opened.length > 1) await opened.pop()!.close();
        rest.unshift(...target.split('/'));
      } else if (rest.length === 0) {
        return await use({ name, sibling, stat, directory });
      } else if (stat && !stat.isDirectory()) {
        throw precondition(`${path}: ${name} is not a directory`, `move ${name} away`);
      } else {
        if (!stat && !make) return undefined;
        if (!stat) await mkdir(sibling(name), 0o755).catch(unless('EEXIST'));
        opened.push(await open(sibling(name), c.O_RDONLY | c.O_DIRECTORY | c.O_NOFOLLOW));
      }
    }
    throw precondition(`${path}: is not a file`, 'move it away');
  } finally {
    for (const handle of opened) await handle.close();
  }
}

export async function exists(root: string, path: string): Promise<boolean> {
  return (await at(root, path, false, async (place) => place.stat !== undefined)) ?? false;
}

export async function read(root: string, path: string): Promise<Found | undefined> {
  return at(root, path, false, async ({ name, sibling, stat }) => {
    if (!stat) return undefined;
    if (!stat.isFile()) throw precondition(`${path}: is not a regular file`, 'move it away');
    const file = await open(sibling(name), c.O_RDONLY | c.O_NOFOLLOW);
    try {
      const { mode, uid } = await file.stat();
      return { content: await file.readFile(), mode: mode & 0o7777, uid };
    } finally {
      await file.close();
    }
  });
}

/** Replaces the file in one step and creates its directories (SPEC G-11). */
export async function write(root: string, path: string, content: Buffer, mode: number): Promise<void> {
  await at(root, path, true, async ({ name, sibling, directory }) => {
    const temporary = sibling(`.${name}.acme-${process.pid}`);
    const file = await open(temporary, c.O_WRONLY | c.O_CREAT | c.O_EXCL, 0o600);
    try {
      await file.writeFile(content);
      await file.chmod(mode);
      await file.sync();
      await rename(temporary, sibling(name));
    } catch (error) {
      await unlink(temporary).catch(unless('ENOENT'));
      throw error;
    } finally {
      await file.close();
    }
    await directory.sync();
  });
}

/**
 * Removes the temporary files that killed processes left beside the file. Node.js has no flock(2), so that each process
 * has a temporary name of its own (SPEC G-12).
 */
export async function clean(root: string, path: string): Promise<void> {
  await at(root, path, false, async ({ name, sibling }) => {
    for (const other of await readdir(sibling('.'))) {
      const pid = other.startsWith(`.${name}.acme-`) ? Number(other.split('-').at(-1)) : 0;
      if (pid > 0 && (pid === process.pid || !isAlive(pid))) await unlink(sibling(other)).catch(unless('ENOENT'));
    }
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

const unless = (code: string) => (error: NodeJS.ErrnoException) => {
  if (error.code !== code) throw error;
  return undefined;
};
