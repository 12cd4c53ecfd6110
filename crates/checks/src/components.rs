//! Strongly connected components: what lies on a cycle with what.

/// The component of each of `n` nodes (Tarjan 1972), without recursion: call chains of real programs are deep.
/// `successor(node, i)` is the node's i-th successor.
pub fn components(n: usize, successor: impl Fn(usize, usize) -> Option<usize>) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (mut index, mut low) = (vec![NONE; n], vec![0; n]);
    let (mut component, mut stack, mut on_stack) = (vec![NONE; n], Vec::new(), vec![false; n]);
    let (mut counter, mut components) = (0, 0);
    for start in 0..n {
        if index[start] != NONE {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some((f, next)) = work.pop() {
            if next == 0 {
                (index[f], low[f]) = (counter, counter);
                counter += 1;
                stack.push(f);
                on_stack[f] = true;
            }
            match successor(f, next) {
                Some(g) => {
                    work.push((f, next + 1));
                    if index[g] == NONE {
                        work.push((g, 0));
                    } else if on_stack[g] {
                        low[f] = low[f].min(index[g]);
                    }
                }
                None => {
                    if low[f] == index[f] {
                        while let Some(g) = stack.pop() {
                            on_stack[g] = false;
                            component[g] = components;
                            if g == f {
                                break;
                            }
                        }
                        components += 1;
                    }
                    if let Some((caller, _)) = work.last() {
                        low[*caller] = low[*caller].min(low[f]);
                    }
                }
            }
        }
    }
    component
}
