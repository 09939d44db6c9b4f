import type { Identity, Options, Parley } from './index.js';

export interface ParleyWidgetProps extends Options {
  identity?: Identity;
  onLoad?: (parley: Parley) => void;
}

/** The widget for as long as the component is on the page. */
export function ParleyWidget(props: ParleyWidgetProps): null;
