import { send, type Call, type Operation, type Options } from './request.js';

type Success<R> = R extends { 200: infer A }
  ? A
  : R extends { 201: infer A }
    ? A
    : R extends { 202: infer A }
      ? A
      : R extends { 204: infer A }
        ? A
        : never;

type JSONOf<C> = C extends { 'application/json': infer B } ? B : never;

/** The result of an operation: the parsed JSON, nothing, or the Response with a file. */
export type Answer<O> = O extends { responses: infer R }
  ? Success<R> extends { content: infer C }
    ? C extends { 'application/json': infer B }
      ? B
      : Response
    : void
  : never;

type PathOf<O> = O extends { parameters: { path: infer P } } ? { path: P } : { path?: undefined };
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? { query?: Q } : { query?: undefined };
type HeadersOf<O> = O extends { parameters: { header?: infer H } } ? { headers?: H } : { headers?: undefined };
type BodyOf<O> = O extends { requestBody: { content: infer C } }
  ? { body: C extends { 'multipart/form-data': unknown } ? JSONOf<C> | FormData : JSONOf<C> }
  : { body?: undefined };

/** The parameters of a call of an operation. */
export type Request<O> = PathOf<O> & QueryOf<O> & HeadersOf<O> & BodyOf<O> & Pick<Call, 'idempotencyKey' | 'signal'>;

type Method<O> =
  Record<never, never> extends Request<O>
    ? (request?: Request<O>) => Promise<Answer<O>>
    : (request: Request<O>) => Promise<Answer<O>>;

type Listed<O> = Answer<O> extends readonly (infer Item)[] ? Item : never;

type Lists<Operations> = {
  [Name in keyof Operations]: Answer<Operations[Name]> extends readonly unknown[] ? Name : never;
}[keyof Operations];

/** One method per operation of an API, named as in its OpenAPI document. */
export type API<Operations, Names extends keyof Operations> = { readonly [Name in Names]: Method<Operations[Name]> } & {
  /** Iterates over all elements of a list, page by page. */
  all<Name extends Lists<Pick<Operations, Names>> & Names>(
    name: Name,
    request?: Request<Operations[Name]>,
  ): AsyncGenerator<Listed<Operations[Name]>>;
};

/** Creates the client of an API; header returns the header with a token. */
export function makeAPI<Operations, Names extends keyof Operations & string>(
  table: Readonly<Record<Names, Operation>>,
  options: Options,
  header: (token: string) => [string, string],
): API<Operations, Names> {
  const call = async (operation: Operation, request: Call) => {
    const response = await send(options, header, operation, request);
    switch (operation.answer) {
      case 'json':
        return (await response.json()) as unknown;
      case 'none':
        return void (await response.body?.cancel());
      case 'raw':
        return response;
    }
  };
  async function* all(name: Names, request: Call = {}) {
    const operation = table[name];
    for (let page: Call | undefined = request; page; ) {
      const response = await send(options, header, operation, page);
      yield* (await response.json()) as unknown[];
      const next = nextQuery(response.headers.get('link'));
      page = next && { ...request, query: next };
    }
  }
  const methods = Object.entries<Operation>(table).map(([name, operation]) => [
    name,
    (request: Call = {}) => call(operation, request),
  ]);
  return { ...Object.fromEntries(methods), all } as API<Operations, Names>;
}

/** Returns the query of the next page from a Link header (RFC 8288). */
function nextQuery(link: string | null): Record<string, string> | undefined {
  const next = link?.match(/<([^>]*)>\s*;[^,]*\brel="?next"?/)?.[1];
  return next === undefined ? undefined : Object.fromEntries(new URL(next, 'http://page.invalid').searchParams);
}
