import type { Settings } from '@parley/shared/api.js';

export type PreviewStage = 'form' | 'chat' | 'closed';
export type PreviewTheme = 'light' | 'dark';

/** The message from the editor to the preview frame. */
export interface PreviewState {
  kind: 'preview';
  stage: PreviewStage;
  theme: PreviewTheme;
  mediaOrigin: string;
  settings: Settings;
}
