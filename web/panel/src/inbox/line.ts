import { withoutMarks } from '@parley/shared/markdown.js';
import { summary, type Message } from '@parley/shared/message.js';
import { strings } from '../strings.js';

/** A message in one line of plain text, for lists and notifications. */
export const lineOf = (m: Message): string => summary(withoutMarks(m), (kind) => strings.render[kind]);
