//! What is known of each way through code: how its references are computed. Kept from when it was first taken.

use crate::code::Code;
use sonde_event::{PlainRecipe, Run};
use sonde_place::Places;

/// What an exit is, as far as its references go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Index of the superblock.
    pub superblock: u32,
    /// References made.
    pub references: u16,
    /// Blocks executed.
    pub blocks: u16,
    /// Words of a record.
    pub words: u16,
    /// How passes are to be looked at.
    pub look: Look,
}

/// How passes by an exit are to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// It was never taken.
    #[default]
    Unknown,
    /// Together, and nothing else is to be seen to.
    Together,
    /// Together, but where the program went belongs to it.
    WithNext,
    /// One by one.
    Odd,
}

/// All ways taken.
pub(crate) struct Ways {
    exits: Vec<Way>,
    superblocks: Vec<Option<Superblock>>,
    /// Bytes of recipes, and most that there may be.
    bytes: usize,
    most: usize,
}

/// A superblock that was passed.
pub(crate) struct Superblock {
    /// Where it is.
    pub pc: u64,
    /// Its references.
    pub recipes: Box<[PlainRecipe]>,
}

impl Ways {
    /// With at most so many bytes of recipes: beyond them references are computed one by one.
    pub fn new(most: usize) -> Ways {
        Ways { exits: Vec::new(), superblocks: Vec::new(), bytes: 0, most }
    }

    /// How passes by an exit are to be looked at.
    #[inline]
    pub fn look(&self, exit: u32) -> Look {
        self.exits.get(exit as usize).map_or(Look::Unknown, |way| way.look)
    }

    /// Whether the references of a pass by this exit can be computed later, with others.
    #[inline]
    pub fn is_plain(&mut self, exit: u32, run: &Run<'_>, code: &mut Code, places: &mut Places) -> bool {
        let look = match self.look(exit) {
            Look::Unknown => {
                // The place is that of now: later, something else may lie there.
                code.delta(run, places);
                self.learn(exit as usize, run)
            }
            known => known,
        };
        look == Look::Together || look == Look::WithNext && run.next_pc.is_some()
    }

    #[cold]
    fn learn(&mut self, exit: usize, run: &Run<'_>) -> Look {
        let look = self.judge(run);
        if exit >= self.exits.len() {
            self.exits.resize((exit + 1).next_power_of_two(), Way::default());
        }
        self.exits[exit] = Way {
            superblock: run.path.superblock,
            references: run.path.refs,
            blocks: run.path.blocks,
            words: run.path.words,
            look,
        };
        look
    }

    fn judge(&mut self, run: &Run<'_>) -> Look {
        let Some(recipes) = run.plain_recipes() else { return Look::Odd };
        let fits = recipes.iter().all(|recipe| recipe.fits(run.path.words));
        if !fits || run.words.len() != usize::from(run.path.words) || !self.keep(run) {
            return Look::Odd;
        }
        // Where it leads is also what a tree over branches wants to know.
        let next = run.path.target == 0 || recipes.iter().any(PlainRecipe::needs_next_pc);
        if next { Look::WithNext } else { Look::Together }
    }

    /// Keeps the recipes of a superblock, if there is room.
    fn keep(&mut self, run: &Run<'_>) -> bool {
        let index = run.path.superblock as usize;
        if index >= self.superblocks.len() {
            self.superblocks.resize_with((index + 1).next_power_of_two(), || None);
        }
        let known = self.superblocks[index].as_ref().map_or(0, |known| known.recipes.len());
        let recipes = run.plain_recipes().unwrap_or(&[]);
        if self.superblocks[index].is_some() && known >= recipes.len() {
            return true;
        }
        self.bytes += (recipes.len() - known) * size_of::<PlainRecipe>();
        let has_room = self.bytes <= self.most;
        if has_room {
            self.superblocks[index] = Some(Superblock { pc: run.superblock.pc, recipes: recipes.into() });
        }
        has_room
    }

    /// A way that was taken.
    #[inline]
    pub fn of(&self, exit: u32) -> Way {
        self.exits.get(exit as usize).copied().unwrap_or_default()
    }

    /// A superblock that was passed.
    pub fn superblock(&self, index: u32) -> Option<&Superblock> {
        self.superblocks.get(index as usize)?.as_ref()
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.exits.capacity() * size_of::<Way>()
            + self.superblocks.capacity() * size_of::<Option<Superblock>>()
            + self.bytes.min(self.most)
    }
}
