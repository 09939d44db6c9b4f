import type { Settings } from '@parley/shared/api.js';

export type PreviewStage = 'form' | 'chat' | 'closed';
export type PreviewTheme = 'light' | 'dark';

/** What the editor tells the preview's page. */
export interface PreviewOrder { kind: 'preview'; stage: PreviewStage; theme: PreviewTheme; mediaOrigin: string; settings: Settings }
