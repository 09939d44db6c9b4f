/** A field of the request that is not valid. */
export interface ErrorField {
  field: string;
  message: string;
}

/** An answer of an API that is not a success. Decide by `code`; `message` is for people. */
export class ParleyError extends Error {
  override readonly name = 'ParleyError';

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The code of the error; empty if the answer did not come from Parley, such as that of a proxy. */
    readonly code: string,
    message: string,
    /** One for each field that is not valid. */
    readonly details: readonly ErrorField[] = [],
    /** The id of the request, for a question to the operator. */
    readonly requestId: string = '',
  ) {
    super(message);
  }

  /** Reads the error of an answer. */
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
