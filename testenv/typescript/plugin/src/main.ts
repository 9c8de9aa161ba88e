// The process and its calls (SPEC sections 6 and 7).
import { join } from 'node:path';
import {
  Server, ServerCredentials, ServerInterceptingCall, status,
  type Metadata, type sendUnaryData, type ServerInterceptor, type ServerUnaryCall, type ServerWritableStream,
} from '@grpc/grpc-js';
import type { ApplyEvent } from '../build/types/machineadm/plugin/v1/ApplyEvent';
import type { ApplyRequest__Output as ApplyRequest } from '../build/types/machineadm/plugin/v1/ApplyRequest';
import type { ConfiguratorHandlers } from '../build/types/machineadm/plugin/v1/Configurator';
import type { DescribeRequest__Output as DescribeRequest } from '../build/types/machineadm/plugin/v1/DescribeRequest';
import type { DescribeResponse } from '../build/types/machineadm/plugin/v1/DescribeResponse';
import type { Finished } from '../build/types/machineadm/plugin/v1/Finished';
import type { PlanRequest__Output as PlanRequest } from '../build/types/machineadm/plugin/v1/PlanRequest';
import type { PlanResponse } from '../build/types/machineadm/plugin/v1/PlanResponse';
import { apiVersion, kind, read, schema, type Spec } from './document';
import { detailOf, statusOf, unsupported } from './errors';
import { clean, exists } from './files';
import { claims, desired, missing } from './plan';
import { services } from './wire';

const cookie = '4d0f3d0c6f6a4c8db1a1c7a2b9e5f3d871f1be1b6e0a4b0c';
const largestMessage = 64 << 20;

async function describe({ target, root, jsonSchema }: DescribeRequest): Promise<DescribeResponse> {
  const linux = target?.os === 'linux';
  const installed = linux && (await exists(root, '/usr/bin/acme-agent').catch(() => false));
  return {
    name: 'acme',
    version: '1.0.0',
    kinds: [{
      apiVersion, kind, phase: 'PHASE_PREPARATION', secretFields: ['spec.token'],
      jsonSchema: jsonSchema ? Buffer.from(JSON.stringify(schema)) : undefined,
    }],
    fitness: !linux ? 'FITNESS_UNSUPPORTED' : installed ? 'FITNESS_INSTALLED' : 'FITNESS_ABSENT',
    fitnessReason: !linux ? 'the agent needs Linux' : installed ? 'acme-agent is installed' : 'acme-agent is not installed',
  };
}

function decode({ target, document }: PlanRequest | ApplyRequest): Spec {
  if (target?.os !== 'linux') throw unsupported('the agent needs Linux');
  return read(document);
}

async function plan(request: PlanRequest): Promise<PlanResponse> {
  const files = desired(decode(request));
  const steps = await missing(request.root, files);
  return { changes: steps.map((s) => s.change), claims: claims(files, request.claimKey) };
}

/** An Apply from the arrival of its headers to its end. */
interface Run {
  stopped: boolean;
}

const runs = new Map<Metadata, Run>();
let turn: Promise<void> = Promise.resolve(); // ends with the last Apply that has arrived (SPEC G-17)

// Headers arrive in the order in which the calls were sent; handlers run in the order in which the messages are complete.
// So a Stop that overtakes the message of an Apply finds the run of that Apply here (SPEC P-28).
const registerRuns: ServerInterceptor = (method, call) =>
  new ServerInterceptingCall(call, method.path !== services.configurator.Apply.path ? undefined : {
    start(next) {
      let key: Metadata;
      next({
        onReceiveMetadata(metadata, deliver) {
          runs.set((key = metadata), { stopped: false });
          deliver(metadata);
        },
        onCancel() {
          runs.delete(key);
        },
      });
    },
  });

async function apply(call: ServerWritableStream<ApplyRequest, ApplyEvent>): Promise<void> {
  const run = runs.get(call.metadata) ?? { stopped: true }; // absent: the call is cancelled
  const cancelled = new Promise<never>((_, reject) => call.once('cancelled', () => reject(new Error('the call is cancelled'))));
  const send = (event: ApplyEvent) => Promise.race([cancelled, new Promise<void>((sent) => call.write(event, () => sent()))]);
  const finished: Finished = {};
  const before = turn;
  let end = () => {};
  turn = new Promise((resolve) => (end = resolve));
  try {
    await before;
    const files = desired(decode(call.request));
    for (const file of files) await clean(call.request.root, file.path);
    for (const [made, { change, make }] of (await missing(call.request.root, files)).entries()) {
      if (run.stopped || call.cancelled || (call.request.limit && made >= call.request.limit)) {
        finished.stopped = true;
        break;
      }
      await send({ started: { change } }); // throws if it cannot be sent; then the change is not begun (SPEC G-16)
      await make();
      await send({ changed: { id: change.id } });
    }
  } catch (error) {
    if (!call.cancelled) finished.error = detailOf(error);
  } finally {
    cancelled.catch(() => {});
    runs.delete(call.metadata);
    end();
  }
  if (call.cancelled) return;
  call.write({ finished });
  call.end();
}

function unary<Request, Answer>(handle: (request: Request) => Promise<Answer>) {
  return (call: ServerUnaryCall<Request, Answer>, answer: sendUnaryData<Answer>) =>
    void handle(call.request).then((value) => answer(null, value), (error) => answer(statusOf(error)));
}

function serve(socket: string): void {
  const server = new Server({
    interceptors: [registerRuns],
    'grpc.max_receive_message_length': largestMessage,
    'grpc.max_send_message_length': largestMessage,
  });
  server.addService(services.plugin, { Describe: unary(describe) });
  server.addService(services.configurator, {
    Plan: unary(plan),
    Apply: (call) => void apply(call),
    Stop(_, answer) {
      for (const run of runs.values()) run.stopped = true;
      answer(null, {});
    },
  } satisfies ConfiguratorHandlers);
  server.addService(services.health, {
    Check(call: ServerUnaryCall<{ service: string }, object>, answer: sendUnaryData<object>) {
      if (call.request.service === 'plugin') answer(null, { status: 'SERVING' });
      else answer({ code: status.NOT_FOUND, details: 'there is no such service' });
    },
  });
  server.addService(services.controller, {
    Shutdown(_: unknown, answer: sendUnaryData<object>) {
      answer(null, {});
      server.tryShutdown(() => process.exit(0));
      setTimeout(() => process.exit(0), 1000); // an Apply in hand: its change is made in one step (SPEC P-3, G-10)
    },
  });
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    process.stdout.write(`1|1|unix|${socket}|grpc|\n`);
  });
}

if (process.env.MACHINEADM_PLUGIN_COOKIE !== cookie) {
  process.stderr.write('This is a plugin of machineadm, which only machineadm starts (machineadm apply).\n');
  process.exit(1);
}
process.umask(0o022);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {}); // SPEC H-6
serve(join(process.env.PLUGIN_UNIX_SOCKET_DIR!, 'agent.sock'));
