// The test vectors of the contract, which build.sh embeds: field paths (SPEC F-14) and digests of claims (SPEC P-33).
import assert from 'node:assert/strict';
import test from 'node:test';
import claims from '../build/proto/claims.jsonl';
import paths from '../build/proto/paths.jsonl';
import { fieldPath } from './document';
import { digest } from './plan';

const lines = (text: string) => text.trim().split('\n').map((line) => JSON.parse(line));

test('field paths', () => {
  const vectors = lines(paths).filter((v) => v.path !== undefined);
  assert(vectors.length > 5);
  for (const { steps, path } of vectors) {
    // A document that has a list where the next step is an index.
    const document = steps.reduceRight((below: unknown, step: unknown) =>
      typeof step === 'number' ? Array(step).concat([below]) : { [String(step)]: below }, undefined);
    assert.equal(fieldPath(document, steps.map(String)), path);
  }
});

test('digests of claims', () => {
  const vectors = lines(claims).filter((v) => v.digest);
  assert(vectors.length > 5);
  for (const { value, digest: want } of vectors) {
    const parts = value.map((part: string) => Buffer.from(part));
    assert.equal(digest(Buffer.from('0123456789abcdef0123456789abcdef'), parts).toString('hex'), want);
  }
});
