// What few visitors see: the rating, the offline form and the picture over the whole panel. The chat loads this file when it first needs
// one of them (ui/extras.ts).

export { provide } from 'chat';
export { OfflineForm } from './ui/offline.js';
export { Preview } from './ui/preview.js';
export { Rating } from './ui/rating.js';
export { default as styles } from './ui/extras.css';
