// The panel's app. Reading order: main.tsx, state.ts (the session), shell.tsx (navigation and sections), api/ (calls to the server), then
// one folder per section.

import { render } from 'preact';
import { startRouter } from './lib/router.js';
import { start } from './state.js';
import { App } from './shell.js';
import { applyTheme, theme } from './theme.js';

applyTheme(theme.value);
startRouter();
render(<App />, document.getElementById('app')!);
void start();
