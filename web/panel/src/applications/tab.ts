import type { Data } from '@parley/shared/message.js';
import type { ApplicationDraft } from '../api/types.js';

/** What each tab of the editor gets: the draft, and the server's errors by the path of the member. */
export interface TabProps {
  d: ApplicationDraft;
  errors: Record<string, string>;
}

/** Changes members of the draft. */
export type Change = (c: Partial<ApplicationDraft>) => void;

/** Replaces the widget's configs of the draft. */
export type ChangeConfigs = (c: Data) => void;
