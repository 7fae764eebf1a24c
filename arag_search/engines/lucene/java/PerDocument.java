package arag;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.SortedSetDocValues;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.SimpleCollector;
import org.apache.lucene.util.BytesRef;

/**
 * A collector of the first n matches in an order. At most some of them have the same value of a
 * field, and at most one has the same member: its ordinal without its last bits.
 *
 * <p>One pass over the matches. Now and then, all but the first n that were kept are dropped: a
 * better match of the same group may take the place of a kept one, but never leaves fewer than n.
 * So the space is O(n), however the matches are spread over groups; the time is linear in the
 * matches, besides those that are kept for a while, which cost O(log n + most) each.
 */
final class PerDocument extends SimpleCollector {
    private static final int SPARE = 64;

    private final int n;
    private final boolean scored;
    private final int most;
    private final int memberBits;
    private final Keys keys;
    private final String groupField;
    private final String ordinalField;
    private final Map<BytesRef, List<Entry>> entries = new HashMap<>();
    private Entry last = null;
    private int docBase = 0;
    private NumericDocValues ordinals = null;
    private SortedSetDocValues groups = null;
    private Scorable scorer = null;
    private long total = 0;
    private int size = 0;

    /** Collect at most so many matches per group, in the order of their keys, then of scores. */
    PerDocument(
            int n,
            boolean scored,
            int most,
            int memberBits,
            Keys keys,
            String groupField,
            String ordinalField) {
        this.n = n;
        this.scored = scored;
        this.most = most;
        this.memberBits = memberBits;
        this.keys = keys;
        this.groupField = groupField;
        this.ordinalField = ordinalField;
    }

    /** The keys of documents, asked for in ascending order. */
    interface Keys {
        long of(int document) throws IOException;
    }

    /** A match: its document, and the three parts of its place in the order. */
    static final class Entry implements Comparable<Entry> {
        final int document;
        final long key;
        final float score;
        final long ordinal;

        Entry(int document, long key, float score, long ordinal) {
            this.document = document;
            this.key = key;
            this.score = score;
            this.ordinal = ordinal;
        }

        @Override
        public int compareTo(Entry other) {
            if (key != other.key) {
                return Long.compare(key, other.key);
            }
            if (score != other.score) {
                return Float.compare(other.score, score);
            }
            return Long.compare(ordinal, other.ordinal);
        }
    }

    /** Return the number of all matches. */
    long total() {
        return total;
    }

    /** Return the collected matches in order. */
    List<Entry> first() {
        List<Entry> all = new ArrayList<>();
        entries.values().forEach(all::addAll);
        all.sort(null);
        return all.subList(0, Math.min(n, all.size()));
    }

    @Override
    public ScoreMode scoreMode() {
        return scored ? ScoreMode.COMPLETE : ScoreMode.COMPLETE_NO_SCORES;
    }

    @Override
    public void setScorer(Scorable scorer) {
        this.scorer = scorer;
    }

    @Override
    protected void doSetNextReader(LeafReaderContext leaf) throws IOException {
        docBase = leaf.docBase;
        ordinals = leaf.reader().getNumericDocValues(ordinalField);
        groups = DocValues.getSortedSet(leaf.reader(), groupField);
    }

    @Override
    public void collect(int document) throws IOException {
        total++;
        long key = keys.of(docBase + document);
        float score = scored ? scorer.score() : 0f;
        if (last != null && (key > last.key || key == last.key && score < last.score)) {
            return;
        }
        // Every document has an ordinal and a group.
        ordinals.advanceExact(document);
        Entry entry = new Entry(docBase + document, key, score, ordinals.longValue());
        if (last != null && entry.compareTo(last) > 0) {
            return;
        }
        groups.advanceExact(document);
        BytesRef group = groups.lookupOrd(groups.nextOrd());
        List<Entry> others = entries.get(group);
        if (others == null) {
            others = new ArrayList<>(1);
            entries.put(BytesRef.deepCopyOf(group), others);
        }
        insert(others, entry);
        if (size > 2L * n + SPARE) {
            prune();
        }
    }

    /** Insert an entry in order, unless its member has a better one or there are better ones. */
    private void insert(List<Entry> group, Entry entry) {
        long member = entry.ordinal >> memberBits;
        int at = 0;
        while (at < group.size() && group.get(at).compareTo(entry) < 0) {
            if (group.get(at).ordinal >> memberBits == member) {
                return;
            }
            at++;
        }
        if (at >= most) {
            return;
        }
        group.add(at, entry);
        size++;
        for (int next = at + 1; next < group.size(); next++) {
            if (group.get(next).ordinal >> memberBits == member) {
                group.remove(next);
                size--;
                return;
            }
        }
        if (group.size() > most) {
            group.remove(most);
            size--;
        }
    }

    /** Keep the first n entries. */
    private void prune() {
        List<Entry> kept = first();
        last = kept.get(n - 1);
        size = n;
        entries.values().forEach(group -> group.removeIf(entry -> entry.compareTo(last) > 0));
        entries.values().removeIf(List::isEmpty);
    }
}
