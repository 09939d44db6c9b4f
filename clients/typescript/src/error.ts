/** An invalid field of the request. */
export interface ErrorField {
  field: string;
  message: string;
}

/** An unsuccessful response of an API. Use `code` in programs; `message` is for people. */
export class ParleyError extends Error {
  override readonly name = 'ParleyError';

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The code of the error; empty if the response did not come from Parley but, for example, from a proxy. */
    readonly code: string,
    message: string,
    /** The errors of the invalid fields. */
    readonly details: readonly ErrorField[] = [],
    /** The id of the request, for support requests to the operator. */
    readonly requestId: string = '',
  ) {
    super(message);
  }

  /** Parses the error of a response. */
  static async from(response: Response): Promise<ParleyError> {
    const text = await response.text();
    const requestId = response.headers.get('x-request-id') ?? '';
    try {
      const body = JSON.parse(text) as { code: unknown; message: unknown; details?: ErrorField[]; requestId?: string };
      if (typeof body.code === 'string' && typeof body.message === 'string') {
        return new ParleyError(response.status, body.code, body.message, body.details, body.requestId ?? requestId);
      }
    } catch {
      // The response is not JSON.
    }
    return new ParleyError(response.status, '', `the server responded with ${response.status}`, [], requestId);
  }
}
