import { makeAPI, type API } from './api.js';
import * as client from './generated/client-api.js';
import * as widget from './generated/widget-api.js';
import type { Options } from './request.js';

/** The Client API, for a company's systems. */
export type Client = API<client.operations, keyof typeof client.table>;

/** The Widget API, for a visitor. */
export type Widget = API<widget.operations, keyof typeof widget.table>;

/** Creates a client of the Client API; accessToken is a company access token. */
export function createClient(options: Options): Client {
  return makeAPI<client.operations, keyof typeof client.table>(client.table, options, (token) => [
    'x-access-token',
    token,
  ]);
}

/** Creates a client of the Widget API; accessToken is the visitor's, from `register`. */
export function createWidget(options: Options): Widget {
  return makeAPI<widget.operations, keyof typeof widget.table>(widget.table, options, (token) => [
    'authorization',
    `Bearer ${token}`,
  ]);
}

export { ParleyError, type ErrorField } from './error.js';
export type { Options } from './request.js';
export type { RetryOptions } from './retry.js';
export {
  verifyWebhook,
  WebhookVerificationError,
  type WebhookEvent,
  type WebhookHeaders,
  type WebhookOptions,
} from './webhook.js';

/** The schemas of the Client API. */
export type ClientSchemas = client.components['schemas'];

/** The schemas of the Widget API. */
export type WidgetSchemas = widget.components['schemas'];
