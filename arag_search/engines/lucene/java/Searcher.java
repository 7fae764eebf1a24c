package arag;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.ExitableDirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiDocValues;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.SortedDocValues;
import org.apache.lucene.index.SortedNumericDocValues;
import org.apache.lucene.index.SortedSetDocValues;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.SortedNumericSelector;
import org.apache.lucene.search.SortedNumericSortField;
import org.apache.lucene.search.SortedSetSelector;
import org.apache.lucene.search.SortedSetSortField;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopFieldCollectorManager;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.TotalHits;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.search.similarities.RawTFSimilarity;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * An open index that Python searches with one call per search: queries come as text (see Queries),
 * matches are returned as arrays of numbers, and their contents as bytes. Thread-safe.
 */
public final class Searcher {
    private final DirectoryReader reader;
    private final List<LeafReaderContext> leaves;
    private final Limit limit = new Limit();
    private final IndexSearcher ranked;
    private final IndexSearcher counting;
    private final boolean inOrder;
    private final int maxTotal;
    private final String ordinal;
    private final String record;
    private final Set<String> text;
    private final SortField up;
    private final Sort byScore;
    private final Sort byOrdinal;
    private final Sort byOrdinalDown;

    /**
     * Search the index of a reader. Totals are exact up to maxTotal. If documents are stored in
     * order of ordinal (inOrder), Lucene returns equal scores in that order without a sort.
     */
    public Searcher(
            DirectoryReader reader,
            boolean inOrder,
            int maxTotal,
            String ordinal,
            String record,
            String text)
            throws IOException {
        this.reader = ExitableDirectoryReader.wrap(reader, limit);
        this.leaves = this.reader.leaves();
        this.inOrder = inOrder;
        this.maxTotal = maxTotal;
        this.ordinal = ordinal;
        this.record = record;
        this.text = Collections.singleton(text);
        this.ranked = searcher();
        this.counting = searcher();
        this.counting.setSimilarity(new RawTFSimilarity());
        this.up = new SortField(ordinal, SortField.Type.LONG);
        SortField down = new SortField(ordinal, SortField.Type.LONG, true);
        this.byScore = new Sort(SortField.FIELD_SCORE, up);
        this.byOrdinal = new Sort(up);
        this.byOrdinalDown = new Sort(down);
    }

    /** Rank by BM25 with these parameters from now on. */
    public void useBm25(float k1, float b) {
        ranked.setSimilarity(new BM25Similarity(k1, b));
    }

    private IndexSearcher searcher() {
        IndexSearcher searcher = new IndexSearcher(reader);
        searcher.setTimeout(limit);
        return searcher;
    }

    /**
     * Return the first n matches by score, equal and unscored matches by ordinal: the total, 1 if it
     * is exact (else 0), then the document, the score as bits and the ordinal of each match. Here and
     * below, sort precedes the score, or is empty: a letter for the type, k(eyword) or p(oint), then
     * + or - for ascending or descending, then the field; nanos is the time that the search may
     * take; 0 means no limit.
     */
    public long[] top(String query, int n, boolean scored, String sort, long nanos)
            throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top = sorted(Queries.read(query), n, scored, sort, ranked);
        } finally {
            limit.end();
        }
        ScoreDoc[] hits = top.scoreDocs;
        long[] flat = new long[2 + 3 * hits.length];
        flat[0] = top.totalHits.value();
        flat[1] = isExact(top) ? 1 : 0;
        int at = 2;
        for (ScoreDoc hit : hits) {
            Object[] fields = ((FieldDoc) hit).fields;
            flat[at++] = hit.doc;
            flat[at++] = Float.floatToIntBits(scoreOf(hit, scored));
            flat[at++] = (Long) fields[fields.length - 1];
        }
        return flat;
    }

    /**
     * Return the first n matches in the order of top. At most so many of them have the same term in
     * the field group, and at most one has the same ordinal without its last memberBits. The form is
     * that of top; the total counts all matches, exactly.
     */
    public long[] topPerGroup(
            String query,
            int n,
            boolean scored,
            String sort,
            String group,
            int most,
            int memberBits,
            long nanos)
            throws IOException {
        limit.begin(nanos);
        PerDocument collector;
        List<PerDocument.Entry> entries;
        try {
            collector =
                    new PerDocument(n, scored, most, memberBits, keys(sort), group, ordinal);
            entries = ranked.search(Queries.read(query), new SingleCollector<>(collector)).first();
        } finally {
            limit.end();
        }
        long[] flat = new long[2 + 3 * entries.size()];
        flat[0] = collector.total();
        flat[1] = 1;
        int at = 2;
        for (PerDocument.Entry entry : entries) {
            flat[at++] = entry.document;
            flat[at++] = Float.floatToIntBits(entry.score);
            flat[at++] = entry.ordinal;
        }
        return flat;
    }

    /**
     * Return the values of fields in the documents that match a query, or in all if it is empty: the
     * number of documents, then what Fields writes for each field. The fields are words that end in
     * U+0000 and begin with a letter for their type: t(ext), k(eyword) or p(oint).
     */
    public byte[] fieldValues(String query, String fields, int most, long nanos)
            throws IOException {
        limit.begin(nanos);
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
            boolean all = query.isEmpty() && !reader.hasDeletions();
            Query matched = all ? null : Queries.read(query.isEmpty() ? "*\0" : query);
            Fields values = new Fields(ranked, limit, matched, out);
            values.writeDocuments();
            for (int at = 0; at < fields.length(); ) {
                int end = fields.indexOf(0, at);
                String field = fields.substring(at + 1, end);
                switch (fields.charAt(at)) {
                    case 't' -> values.writeText(field);
                    case 'k' -> values.writeTerms(field, most);
                    default -> values.writeNumbers(field);
                }
                at = end + 1;
            }
            return out.toByteArray();
        } finally {
            limit.end();
        }
    }

    /**
     * Return the matches with ranks from (inclusive) to end (exclusive) in the order of top, with
     * their contents: a line of JSON, [total, 1 if it is exact, number of matches before end,
     * scores, records]; then, withText, the texts one after another without separators.
     */
    public byte[] page(
            String query,
            int from,
            int end,
            boolean scored,
            boolean frequencies,
            boolean withText,
            String sort,
            long nanos)
            throws IOException {
        limit.begin(nanos);
        TopDocs top;
        try {
            top = best(Queries.read(query), end, scored, sort, frequencies ? counting : ranked);
        } finally {
            limit.end();
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        int[] documents = writePage(top, from, scored, out);
        out.write(']');
        if (withText) {
            writeTexts(documents, out);
        }
        return out.toByteArray();
    }

    /**
     * Count the documents that match each of the first queries, as counts does. Of each other query,
     * return the first matches: as many as its number in ends, which is negative if it has no scores.
     * The result is a line of JSON, the list of counts and of pages as page writes them. After it,
     * withText, come the texts of all pages. A term is looked up only once.
     *
     * <p>The words of alike, which Queries reads, are a number of edits and a word for each query, or
     * 0. The page of a query with a word ends with a list of texts, which is written instead of the
     * texts of its matches: for each match, the words of the field that are like this word.
     */
    public byte[] countsAndPages(
            String queries,
            int counted,
            long[] ends,
            boolean withText,
            String field,
            String alike,
            long nanos)
            throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream(8192);
        int[][] documents = new int[ends.length][];
        limit.begin(nanos);
        try {
            Queries parsed = new Queries(queries, ranked);
            Queries words = new Queries(alike, null);
            out.write('[');
            for (int i = 0; i < counted; i++) {
                out.write((count(parsed.next()) + ",").getBytes(StandardCharsets.US_ASCII));
            }
            for (int i = 0; i < ends.length; i++) {
                boolean scored = ends[i] > 0;
                int end = (int) Math.abs(ends[i]);
                TopDocs top = best(parsed.next(), end, scored, "", ranked);
                documents[i] = writePage(top, 0, scored, out);
                int edits = words.number();
                if (edits > 0) {
                    writeAlike(documents[i], new Term(field, words.word()), edits, out);
                    documents[i] = new int[0];
                }
                out.write(']');
                out.write(i + 1 < ends.length ? ',' : ']');
            }
        } finally {
            limit.end();
        }
        if (withText) {
            writeTexts(Arrays.stream(documents).flatMapToInt(Arrays::stream).toArray(), out);
        }
        return out.toByteArray();
    }

    /** Add to a page, for each document, the words of a field that are like one. */
    private void writeAlike(int[] documents, Term term, int edits, ByteArrayOutputStream out)
            throws IOException {
        int[] ascending = documents.clone();
        Arrays.sort(ascending);
        StringBuilder[] words = new StringBuilder[documents.length];
        Arrays.setAll(words, i -> new StringBuilder());
        LeafReaderContext leaf = null;
        for (int first = 0, end; first < ascending.length; first = end) {
            leaf = leafOf(ascending[first]);
            end = first + 1;
            while (end < ascending.length && leafOf(ascending[end]) == leaf) {
                end++;
            }
            Terms terms = leaf.reader().terms(term.field());
            TermsEnum like = terms == null ? TermsEnum.EMPTY : Similar.terms(terms, term, edits);
            PostingsEnum postings = null;
            for (BytesRef word = like.next(); word != null; word = like.next()) {
                postings = like.postings(postings, PostingsEnum.NONE);
                for (int i = first; i < end; i++) {
                    int number = ascending[i] - leaf.docBase;
                    if (postings.docID() < number) {
                        postings.advance(number);
                    }
                    if (postings.docID() == number) {
                        words[i].append(words[i].isEmpty() ? "" : " ").append(word.utf8ToString());
                    }
                }
            }
        }
        StringBuilder list = new StringBuilder(",[");
        for (int i = 0; i < documents.length; i++) {
            String text = words[Arrays.binarySearch(ascending, documents[i])].toString();
            text = text.replace("\\", "\\\\").replace("\"", "\\\"");
            list.append(i == 0 ? "\"" : ",\"").append(text).append('"');
        }
        out.write(list.append(']').toString().getBytes(StandardCharsets.UTF_8));
    }

    private TopDocs best(Query query, int n, boolean scored, String sort, IndexSearcher searcher)
            throws IOException {
        return scored && inOrder && sort.isEmpty()
                ? plain(query, n, searcher)
                : sorted(query, n, scored, sort, searcher);
    }

    /**
     * Write the matches from a rank on, as page does, without their texts and the end of the page;
     * return the documents.
     */
    private int[] writePage(TopDocs top, int from, boolean scored, ByteArrayOutputStream out)
            throws IOException {
        ScoreDoc[] hits = top.scoreDocs;
        int n = Math.max(0, hits.length - from);
        int[] documents = new int[n];
        StringBuilder scores = new StringBuilder();
        for (int i = 0; i < n; i++) {
            ScoreDoc hit = hits[from + i];
            documents[i] = hit.doc;
            // As a double, whose digits represent exactly this float.
            scores.append(i == 0 ? "" : ",").append((double) scoreOf(hit, scored));
        }
        String head =
                "[" + top.totalHits.value() + (isExact(top) ? ",1," : ",0,") + hits.length;
        out.write((head + ",[" + scores + "],").getBytes(StandardCharsets.US_ASCII));
        writeRecords(documents, out);
        return documents;
    }

    /** Count the documents that match each of several queries, up to maxTotal + 1. */
    public long[] counts(String queries, int howMany, long nanos) throws IOException {
        limit.begin(nanos);
        try {
            Queries parsed = new Queries(queries, ranked);
            long[] counts = new long[howMany];
            for (int i = 0; i < howMany; i++) {
                counts[i] = count(parsed.next());
            }
            return counts;
        } finally {
            limit.end();
        }
    }

    private long count(Query query) throws IOException {
        // In the order of the index, Lucene stops after maxTotal matches.
        TopFieldCollectorManager manager =
                new TopFieldCollectorManager(Sort.INDEXORDER, 1, null, maxTotal);
        return Math.min(ranked.search(query, manager).totalHits.value(), maxTotal + 1L);
    }

    /** Count all documents that match a query. */
    public int countAll(String text, long nanos) throws IOException {
        Query query = Queries.read(text);
        if (query instanceof BoostQuery boost) {
            query = boost.getQuery();
        }
        if (query instanceof DisjunctionMaxQuery disjunction) {
            // Lucene can count a Boolean query of two terms without reading both to their ends.
            BooleanQuery.Builder any = new BooleanQuery.Builder();
            for (Query disjunct : disjunction.getDisjuncts()) {
                any.add(disjunct, BooleanClause.Occur.SHOULD);
            }
            query = any.build();
        }
        limit.begin(nanos);
        try {
            return ranked.count(query);
        } finally {
            limit.end();
        }
    }

    /**
     * Return the n matches after a position in order of ordinal, each as document and ordinal. A
     * position is such a pair; the start is document -1.
     */
    public long[] after(String query, int document, long ordinal, int n) throws IOException {
        FieldDoc position =
                document < 0
                        ? null
                        : new FieldDoc(document, 0f, new Object[] {ordinal});
        TopFieldCollectorManager manager = new TopFieldCollectorManager(byOrdinal, n, position, n);
        ScoreDoc[] hits = ranked.search(Queries.read(query), manager).scoreDocs;
        long[] flat = new long[2 * hits.length];
        for (int i = 0; i < hits.length; i++) {
            flat[2 * i] = hits[i].doc;
            flat[2 * i + 1] = (Long) ((FieldDoc) hits[i]).fields[0];
        }
        return flat;
    }

    /** Return the numbers of the matching documents as a set: a bit for each document. */
    public long[] matching(String query, long nanos) throws IOException {
        limit.begin(nanos);
        try {
            Matching collector = new Matching(reader.maxDoc());
            ranked.search(Queries.read(query), new SingleCollector<>(collector));
            return collector.documents().getBits();
        } finally {
            limit.end();
        }
    }

    /** Return for each of some terms, which are words of Queries, 1 if a field has it, else 0. */
    public byte[] known(String field, String terms, int howMany) throws IOException {
        byte[] known = new byte[howMany];
        Queries words = new Queries(terms, null);
        BytesRef[] values = new BytesRef[howMany];
        for (int i = 0; i < howMany; i++) {
            values[i] = new BytesRef(words.unescapedWord());
        }
        for (LeafReaderContext leaf : leaves) {
            Terms here = leaf.reader().terms(field);
            TermsEnum found = here == null ? null : here.iterator();
            for (int i = 0; found != null && i < howMany; i++) {
                if (known[i] == 0 && found.seekExact(values[i])) {
                    known[i] = 1;
                }
            }
        }
        return known;
    }

    /** Return the ordinals of the documents from a number to an end; -1 for a deleted document. */
    public long[] ordinals(int from, int end) throws IOException {
        long[] ordinals = new long[end - from];
        Arrays.fill(ordinals, -1L);
        Bits live = MultiBits.getLiveDocs(reader);
        NumericDocValues values = MultiDocValues.getNumericValues(reader, ordinal);
        for (int i = values.advance(from); i < end; i = values.nextDoc()) {
            if (live == null || live.get(i)) {
                ordinals[i - from] = values.longValue();
            }
        }
        return ordinals;
    }

    /** Return the match with the greatest ordinal, or -1 if nothing matches. */
    public int last(String query) throws IOException {
        TopFieldCollectorManager manager =
                new TopFieldCollectorManager(byOrdinalDown, 1, null, 1);
        ScoreDoc[] hits = ranked.search(Queries.read(query), manager).scoreDocs;
        return hits.length == 0 ? -1 : hits[0].doc;
    }

    /** Return a line of JSON, the list of the records of documents; then, withText, their texts. */
    public byte[] read(long[] documents, boolean withText) throws IOException {
        int[] numbers = new int[documents.length];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (int) documents[i];
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        writeRecords(numbers, out);
        if (withText) {
            writeTexts(numbers, out);
        }
        return out.toByteArray();
    }

    /** Return the first n matches by score, those with equal scores as they are stored. */
    private TopDocs plain(Query query, int n, IndexSearcher searcher) throws IOException {
        return byScore(
                query,
                n,
                searcher,
                (plain, size) ->
                        searcher.search(
                                plain,
                                new TopScoreDocCollectorManager(atMostAll(size), null, maxTotal)));
    }

    private TopDocs sorted(
            Query query, int n, boolean scored, String sort, IndexSearcher searcher)
            throws IOException {
        if (!sort.isEmpty()) {
            SortField first = sortField(sort);
            Sort order = scored ? new Sort(first, SortField.FIELD_SCORE, up) : new Sort(first, up);
            return sorted(searcher, query, n, order);
        }
        return scored
                ? byScore(
                        query, n, searcher, (plain, size) -> sorted(searcher, plain, size, byScore))
                : sorted(searcher, query, n, byOrdinal);
    }

    private TopDocs sorted(IndexSearcher searcher, Query query, int n, Sort order)
            throws IOException {
        return searcher.search(
                query, new TopFieldCollectorManager(order, atMostAll(n), null, maxTotal));
    }

    /** Return the first n matches of a ranking, which knows nothing of a DEMOTE of all matches. */
    private static TopDocs byScore(
            Query query, int n, IndexSearcher searcher, Demoted.Ranking ranking)
            throws IOException {
        Demoted demoted = Demoted.outermost(query);
        return demoted == null ? ranking.first(query, n) : demoted.top(n, searcher, ranking);
    }

    /**
     * Return the part of a sort that precedes the score. A document counts with its least value
     * ascending, with its greatest descending; one without a value comes last in both.
     */
    private static SortField sortField(String sort) {
        boolean down = sort.charAt(1) == '-';
        String field = sort.substring(2);
        if (sort.charAt(0) == 'k') {
            Object end = down ? SortField.STRING_FIRST : SortField.STRING_LAST;
            return new SortedSetSortField(field, down, ofTerms(down), end);
        }
        long last = down ? Long.MIN_VALUE : Long.MAX_VALUE;
        return new SortedNumericSortField(
                field, SortField.Type.LONG, down, ofNumbers(down), last);
    }

    private static SortedSetSelector.Type ofTerms(boolean down) {
        return down ? SortedSetSelector.Type.MAX : SortedSetSelector.Type.MIN;
    }

    private static SortedNumericSelector.Type ofNumbers(boolean down) {
        return down ? SortedNumericSelector.Type.MAX : SortedNumericSelector.Type.MIN;
    }

    /** Return numbers that order documents as a sort does. */
    private PerDocument.Keys keys(String sort) throws IOException {
        if (sort.isEmpty()) {
            return document -> 0L;
        }
        boolean down = sort.charAt(1) == '-';
        String field = sort.substring(2);
        if (sort.charAt(0) == 'k') {
            SortedSetDocValues all = MultiDocValues.getSortedSetValues(reader, field);
            SortedDocValues terms = all == null ? null : SortedSetSelector.wrap(all, ofTerms(down));
            return document ->
                    terms == null || !terms.advanceExact(document)
                            ? Long.MAX_VALUE
                            : down ? -terms.ordValue() : terms.ordValue();
        }
        SortedNumericDocValues all = MultiDocValues.getSortedNumericValues(reader, field);
        NumericDocValues numbers =
                all == null
                        ? null
                        : SortedNumericSelector.wrap(all, ofNumbers(down), SortField.Type.LONG);
        return document ->
                numbers == null || !numbers.advanceExact(document)
                        ? Long.MAX_VALUE
                        : down ? ~numbers.longValue() : numbers.longValue();
    }

    /** Return the score of a hit, which precedes the ordinal where hits are sorted. */
    private static float scoreOf(ScoreDoc hit, boolean scored) {
        if (!scored) {
            return 0f;
        }
        return hit instanceof FieldDoc sorted
                ? (Float) sorted.fields[sorted.fields.length - 2]
                : hit.score;
    }

    /** Limit n to the size of the index, since Lucene allocates room for n hits. */
    private int atMostAll(int n) {
        return Math.min(n, Math.max(1, reader.maxDoc()));
    }

    private boolean isExact(TopDocs top) {
        return top.totalHits.value() <= maxTotal
                || top.totalHits.relation() == TotalHits.Relation.EQUAL_TO;
    }

    private void writeRecords(int[] documents, ByteArrayOutputStream out) throws IOException {
        out.write('[');
        LeafReaderContext leaf = null;
        BinaryDocValues values = null;
        for (int i = 0; i < documents.length; i++) {
            LeafReaderContext here = leafOf(documents[i]);
            int number = documents[i] - here.docBase;
            // Doc values can only be read forwards.
            if (values == null || here != leaf || number < values.docID()) {
                leaf = here;
                values = here.reader().getBinaryDocValues(record);
            }
            if (values.docID() < number) {
                values.advance(number); // every document has a record
            }
            BytesRef value = values.binaryValue();
            if (i > 0) {
                out.write(',');
            }
            out.write(value.bytes, value.offset, value.length);
        }
        out.write(']');
    }

    private void writeTexts(int[] documents, ByteArrayOutputStream out) throws IOException {
        out.write('\n');
        StoredFields stored = ranked.storedFields();
        String name = text.iterator().next();
        for (int document : documents) {
            out.write(stored.document(document, text).get(name).getBytes(StandardCharsets.UTF_8));
        }
    }

    private LeafReaderContext leafOf(int document) {
        return leaves.get(ReaderUtil.subIndex(document, leaves));
    }
}
