// Copies the schemas that several APIs share from the document that defines them into the others, with all schemas that
// they refer to. `make generate` runs it in the root of the repository, before what reads the documents.

import { readFile, writeFile } from 'node:fs/promises';

const shared = [
  { from: 'client-api', roots: ['Message', 'Error'], to: ['widget-api', 'panel'] },
  { from: 'widget-api', roots: ['WidgetConfigs'], to: ['panel'] },
];

const pathOf = (service) => `services/${service}/openapi.json`;
const read = async (service) => JSON.parse(await readFile(pathOf(service), 'utf8'));

/** Adds a schema's name, and the names of all schemas that it refers to. */
function collect(schemas, name, names) {
  if (names.has(name)) return;
  names.add(name);
  for (const [, other] of JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    collect(schemas, other, names);
}

for (const { from, roots, to } of shared) {
  const source = (await read(from)).components.schemas;
  const names = new Set();
  for (const root of roots) collect(source, root, names);
  for (const service of to) {
    const document = await read(service);
    for (const name of names) document.components.schemas[name] = source[name]; // a new one comes last
    await writeFile(pathOf(service), JSON.stringify(document, null, 2) + '\n');
  }
}
