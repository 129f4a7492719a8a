// What the package exports as `chio-broker/sidecar`: whoever holds a kernel serves the caller routes over it.
export { type CallerKernel, type DeliveryFoundations } from './caller-kernel.js'
export { ControlToken, readControlToken } from './control-token.js'
export { callerKernelOf } from './embedded-kernel.js'
export { openApiDocument } from './openapi.js'
export type { SidecarListen } from './sidecar-listener.js'
export { type RunningSidecar, type SidecarOptions, startSidecar } from './start-sidecar.js'
