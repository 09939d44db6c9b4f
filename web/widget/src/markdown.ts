// Markdown, which answers of bots have. ui/ondemand.ts loads this module with the first such answer.

export { provide } from 'chat';
export { withoutMarks } from '@parley/shared/markdown.js';
export { Markdown } from '@parley/shared/render/markdown.js';
export { default as styles } from './ui/markdown.css';
