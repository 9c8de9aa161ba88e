// The services and messages of SPEC section 7. The build embeds the .proto files, so that the plugin is one file.
import { loadPackageDefinition } from '@grpc/grpc-js';
import { fromJSON, type MessageTypeDefinition } from '@grpc/proto-loader';
import { common, parse, Root } from 'protobufjs';
import controllerProto from '../build/proto/controller.proto';
import healthProto from '../build/proto/health.proto';
import pluginProto from '../build/proto/plugin.proto';
import statusProto from '../build/proto/status.proto';
import type { ProtoGrpcType as Controller } from '../build/types/controller';
import type { ProtoGrpcType as Health } from '../build/types/health';
import type { ProtoGrpcType as Plugin } from '../build/types/plugin';
import type { ErrorDetail } from '../build/types/machineadm/plugin/v1/ErrorDetail';

const root = new Root();
for (const name of ['any', 'duration', 'timestamp']) {
  root.addJSON(common.get(`google/protobuf/${name}.proto`)!.nested!);
}
for (const text of [controllerProto, healthProto, pluginProto, statusProto]) {
  parse(text, root);
}

// The same options as for proto-loader-gen-types in build.sh.
const definitions = fromJSON(root.toJSON(), { longs: String, enums: String, defaults: true, oneofs: true });
const packages = loadPackageDefinition(definitions) as unknown as Controller & Health & Plugin;

export const services = {
  plugin: packages.machineadm.plugin.v1.Plugin.service,
  configurator: packages.machineadm.plugin.v1.Configurator.service,
  controller: packages.plugin.GRPCController.service,
  health: packages.grpc.health.v1.Health.service,
};

/** The trailer grpc-status-details-bin of an error (SPEC E-2). */
export function statusDetails(code: number, detail: ErrorDetail): Buffer {
  const details = definitions['machineadm.plugin.v1.ErrorDetail'] as MessageTypeDefinition<ErrorDetail, unknown>;
  const status = definitions['google.rpc.Status'] as MessageTypeDefinition<object, unknown>;
  return status.serialize({
    code,
    message: detail.message,
    details: [{ type_url: 'type.googleapis.com/machineadm.plugin.v1.ErrorDetail', value: details.serialize(detail) }],
  });
}
