import type { Settings } from '@parley/shared/api.js';
import { text, type Data, type Message } from '@parley/shared/message.js';

/** The state of the fake Widget API. */
export interface Backend {
  settings: Settings;
  messages: Message[];
  push(m: Message): void;
}

export const fakeToken = (): string => {
  const part = (o: object) => btoa(JSON.stringify(o)).replace(/=+$/, '');
  return `${part({ alg: 'none' })}.${part({ sub: 'preview', exp: Math.floor(Date.now() / 1000) + 86_400 })}.preview`;
};

/** Handles a request like the Widget API, as far as the preview needs it. */
export async function handle(
  backend: Backend,
  method: string,
  path: string,
  body: Data,
): Promise<{ status: number; json?: unknown }> {
  if (path.startsWith('/settings/')) return { status: 200, json: backend.settings };
  if (path === '/widget/limits.json') return { status: 200, json: { maxFileBytes: 25 << 20 } };
  if (path === '/register') {
    const required = backend.settings.widgetConfigs.requiredFields;
    const missing = (Array.isArray(required) ? required : []).filter((name) => !body[String(name)]);
    if (missing.length)
      return {
        status: 400,
        json: {
          statusCode: 400,
          code: 'VALIDATION_ERROR',
          message: `Missing required fields: ${missing.join(', ')}`,
          details: [],
        },
      };
    return { status: 200, json: { accessToken: fakeToken() } };
  }
  if (path === '/message' && method === 'GET') return { status: 200, json: backend.messages };
  if (path === '/message') return { status: 201, json: accept(backend, body) };
  return {
    status: path.endsWith('/read') ? 204 : 404,
    json: { statusCode: 404, code: 'NOT_FOUND', message: 'Not found' },
  };
}

function accept(backend: Backend, body: Data): Message {
  const m: Message = {
    id: crypto.randomUUID(),
    createdAt: new Date().toISOString(),
    type: text(body.type) || 'TEXT',
    data: (body.data as Data) ?? {},
    nameOfSender: 'Ada',
    isFromSupport: false,
    chatId: 'preview',
  };
  backend.messages = [...backend.messages, m];
  setTimeout(() => {
    const reply: Message = {
      id: crypto.randomUUID(),
      createdAt: new Date().toISOString(),
      type: 'TEXT',
      data: { text: 'This is a preview: nothing is sent.' },
      nameOfSender: backend.settings.botName,
      isFromSupport: true,
      chatId: 'preview',
    };
    backend.messages = [...backend.messages, reply];
    backend.push(reply);
  }, 700);
  return m;
}
