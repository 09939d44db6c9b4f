import type { Identity, Options, Parley } from './index.js';

export interface ParleyWidgetProps extends Options {
  identity?: Identity;
  onLoad?: (parley: Parley) => void;
}

/** Shows the widget while the component is mounted. */
export function ParleyWidget(props: ParleyWidgetProps): null;
