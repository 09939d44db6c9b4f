// What is rarely used: rating, offline form, picture preview and sound. ui/ondemand.ts loads this module on first use.

export { provide } from 'chat';
export { chime } from './sound.js';
export { OfflineForm } from './ui/offline.js';
export { Preview } from './ui/preview.js';
export { Rating } from './ui/rating.js';
export { default as styles } from './ui/extras.css';
