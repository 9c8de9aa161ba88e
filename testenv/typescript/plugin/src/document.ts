// Reads a MonitoringAgent document strictly, by the JSON schema that Describe sends.
import Ajv2020, { type ErrorObject } from 'ajv/dist/2020';
import type { Violation } from '../build/types/machineadm/plugin/v1/Violation';
import { invalid, unsupported } from './errors';

export const apiVersion = 'agent.example.org/v1';
export const kind = 'MonitoringAgent';

export interface Spec {
  endpoint: string;
  token: { value: string };
  intervalSeconds?: number;
  labels?: Record<string, string>;
}

// Each description completes the sentence of a violation: the hint of a field is what its value has to be.
export const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: kind,
  description: 'MonitoringAgent configures the monitoring agent of Acme.',
  type: 'object',
  required: ['apiVersion', 'kind', 'metadata', 'spec'],
  properties: {
    apiVersion: { const: apiVersion },
    kind: { const: kind },
    metadata: { type: 'object' },
    spec: {
      type: 'object',
      additionalProperties: false,
      required: ['endpoint', 'token'],
      properties: {
        provider: { description: 'The provider of the plugin.', type: 'string' },
        endpoint: {
          description: 'The HTTPS URL to which the agent reports, without a user name.',
          type: 'string',
          pattern: '^https://[a-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?$',
        },
        token: {
          description: 'The secret by which the agent authenticates itself.',
          type: 'object',
          additionalProperties: false,
          required: ['value'],
          properties: { value: { description: 'Printable ASCII without blanks.', type: 'string', pattern: '^[!-~]+$' } },
        },
        intervalSeconds: {
          description: 'Seconds between two reports, 10 to 3600. Default 60.',
          type: 'integer',
          minimum: 10,
          maximum: 3600,
        },
        labels: {
          description: 'Labels of every report, whose names match [a-z][a-z0-9/.-]*.',
          type: 'object',
          additionalProperties: false,
          patternProperties: { '^[a-z][a-z0-9/.-]*$': { description: 'The value of a label.', type: 'string' } },
        },
      },
    },
  },
} as const;

const validate = new Ajv2020({ allErrors: true, verbose: true, strict: true }).compile(schema);

/** Returns the spec, or throws a refusal that names every violation (SPEC G-2). No message quotes a value (SPEC G-3). */
export function read(data: Buffer): Spec {
  // A null field counts as absent (SPEC F-6). Numbers beyond 2^53 lose digits here; the maximum of the schema refuses them.
  const document = JSON.parse(data.toString('utf8'), (_, value) => value ?? undefined);
  if (document.apiVersion !== apiVersion || document.kind !== kind) {
    throw unsupported(`${document.kind} of ${document.apiVersion} is not served, only ${kind} of ${apiVersion}`);
  }
  if (!validate(document)) throw invalid(validate.errors!.map((e) => violation(document, e)));
  return document.spec;
}

function violation(document: unknown, error: ErrorObject): Violation {
  const steps = error.instancePath.split('/').slice(1).map((s) => s.replace(/~1/g, '/').replace(/~0/g, '~'));
  const hint = error.parentSchema?.description;
  switch (error.keyword) {
    case 'required':
      return { field: fieldPath(document, [...steps, error.params.missingProperty]), message: 'is required', hint };
    case 'additionalProperties':
      return { field: fieldPath(document, [...steps, error.params.additionalProperty]), message: 'is not known', hint };
    default:
      return { field: fieldPath(document, steps), message: error.message, hint };
  }
}

/** The field path of SPEC F-14. A step is an index where the document has a list. */
export function fieldPath(document: unknown, steps: string[]): string {
  let path = '';
  let at: any = document;
  for (const step of steps) {
    if (Array.isArray(at)) path += `[${step}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(step)) path += path ? `.${step}` : step;
    else path += `["${step.replace(special, escape)}"]`;
    at = at?.[step];
  }
  return path;
}

const special = /["\\\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/g;

function escape(c: string): string {
  return c === '"' || c === '\\' ? `\\${c}` : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
