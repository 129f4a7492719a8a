// Owns nginx as a rival: the distribution's own package, unpacked into a folder of its own, so that nothing of the
// system is changed. Its server injects the credential on a Unix socket: no binding, no record.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { unpackPackages } from './debian-packages.js'
import { collectAnswer } from './http-answer.js'
import { lastWords, peerFolder, PeerMissing } from './peer-missing.js'
import { PROVIDER_ADDRESS, PROVIDER_HOST, PROVIDER_PATH } from './provider-address.js'
import type { Provider } from './provider.js'

const isRoot = process.geteuid?.() === 0
const POLL_MS = 5
const START_BUDGET_MS = 5_000

/** @throws PeerMissing with the reason. */
function nginxProgram(): string {
  const folder = peerFolder('nginx')
  const program = join(folder, 'usr', 'sbin', 'nginx')
  try {
    if (!existsSync(program)) unpackPackages(folder, ['nginx'])
    execFileSync(program, ['-v'], { stdio: 'pipe' })
    return program
  } catch (error) {
    throw new PeerMissing(`nginx is not here and apt could not bring it: ${lastWords(error)}`)
  }
}

/** At its best: connections to the provider are kept, its certificate is verified. */
function configuration(folder: string, { port, token }: Provider): string {
  const place = (name: string): string => join(folder, name)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${place(name)};`,
  )
  return `${isRoot ? 'user root;' : ''} daemon off; worker_processes 1; error_log stderr crit; pid ${place('pid')};
events { worker_connections 64; }
http {
  access_log off; ${temporary.join(' ')}
  upstream provider { server ${PROVIDER_ADDRESS}:${port}; keepalive 8; }
  server {
    listen unix:${place('sock')};
    location / {
      proxy_pass https://provider; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_set_header Host ${PROVIDER_HOST};
      proxy_set_header Authorization "Bearer ${token}";
      proxy_ssl_trusted_certificate ${place('ca.pem')}; proxy_ssl_verify on;
      proxy_ssl_server_name on; proxy_ssl_name ${PROVIDER_HOST};
    }
  }
}
`
}

export class InjectingNginx {
  readonly #folder: string
  readonly #stop: () => Promise<void>

  private constructor(folder: string, stop: () => Promise<void>) {
    this.#folder = folder
    this.#stop = stop
  }

  /** @throws PeerMissing with the reason. */
  static async start(provider: Provider): Promise<InjectingNginx> {
    const program = nginxProgram()
    const folder = mkdtempSync(join(tmpdir(), 'chio-bench-nginx-'))
    writeFileSync(join(folder, 'ca.pem'), provider.caPem)
    writeFileSync(join(folder, 'nginx.conf'), configuration(folder, provider))
    const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const exited = once(child, 'exit')
    const nginx = new InjectingNginx(folder, async () => {
      child.kill('SIGTERM')
      await exited
    })
    await nginx.#untilServing()
    return nginx
  }

  /** The same request as an execution, on a fresh connection to the socket; the token is added by nginx. */
  async injectedRequest(body: Uint8Array): Promise<void> {
    const sent = request({
      socketPath: join(this.#folder, 'sock'),
      agent: false,
      method: 'POST',
      path: PROVIDER_PATH,
      headers: { 'content-length': body.length, host: PROVIDER_HOST },
    })
    await collectAnswer(sent, body)
  }

  async stop(): Promise<void> {
    await this.#stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #untilServing(): Promise<void> {
    for (let waited = 0; !existsSync(join(this.#folder, 'sock')); waited += POLL_MS) {
      if (waited > START_BUDGET_MS) throw new PeerMissing('nginx was started and did not serve its socket')
      await sleep(POLL_MS)
    }
  }
}
