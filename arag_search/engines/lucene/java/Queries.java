package arag;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TermStates;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.ConstantScoreQuery;
import org.apache.lucene.search.DisjunctionMaxQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.WildcardQuery;
import org.apache.lucene.util.BytesRef;

/**
 * A reader of Lucene queries in the text form that compile.py writes, in which a query of any
 * size crosses from Python to Java in one call.
 *
 * <p>The text is a list of words, each terminated by U+0000, in prefix order: the kind of a query,
 * then its parts. In words from users, U+0000 and the backslash are escaped as \0 and \\.
 */
public final class Queries {
    private static final int END = 0;

    static {
        // Scopes and keyword lists may have any length; the parser limits queries.
        IndexSearcher.setMaxClauseCount(Integer.MAX_VALUE);
    }

    private final String text;
    private final IndexSearcher searcher;
    private final Map<Term, Query> termQueries = new HashMap<>();
    private int at = 0;

    /**
     * Read the queries of a text. With a searcher (else null), each term is looked up in its index
     * here, and only once, however many queries contain it.
     */
    Queries(String text, IndexSearcher searcher) {
        this.text = text;
        this.searcher = searcher;
    }

    /** Return the query that a text contains. */
    public static Query read(String text) {
        return new Queries(text, null).next();
    }

    /** Return the next query of a text that contains several. */
    Query next() {
        char kind = word().charAt(0);
        return switch (kind) {
            case 't' -> term();
            case 'p' -> phrase();
            case 'd' -> new DisjunctionMaxQuery(queries(), 0f);
            case 'b' -> bool();
            case '~' -> demoted();
            case '^' -> boosted();
            case 'c' -> new ConstantScoreQuery(next());
            case 'x' -> expanded();
            case 'w' -> new WildcardQuery(new Term(word(), word()));
            case 's' -> values();
            case 'o' -> ordinals();
            case 'l' -> LongPoint.newRangeQuery(word(), integer(), integer());
            case 'n' -> DoublePoint.newRangeQuery(word(), real(), real());
            case '*' -> MatchAllDocsQuery.INSTANCE;
            default -> throw new IllegalArgumentException("no query is written " + kind);
        };
    }

    private Query boosted() {
        float weight = (float) real();
        return new BoostQuery(next(), weight);
    }

    private Query term() {
        String field = word();
        Term term = new Term(field, unescaped(word()));
        if (searcher == null) {
            return new TermQuery(term);
        }
        Query query = termQueries.get(term);
        if (query == null) {
            try {
                query = new TermQuery(term, TermStates.build(searcher, term, true));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            termQueries.put(term, query);
        }
        return query;
    }

    /** Read a word that stands for those that begin with it or, with edits, are like it. */
    private Query expanded() {
        Term term = new Term(word(), word());
        int edits = number();
        return edits == 0 ? new Beginning(term) : new Similar(term, edits);
    }

    private Query phrase() {
        String field = word();
        int slop = number();
        String[] terms = new String[number()];
        for (int i = 0; i < terms.length; i++) {
            terms[i] = word();
        }
        return new PhraseQuery(slop, field, terms);
    }

    private Query bool() {
        BooleanQuery.Builder builder = new BooleanQuery.Builder();
        for (int left = number(); left > 0; left--) {
            BooleanClause.Occur occur = occur(word().charAt(0));
            builder.add(next(), occur);
        }
        return builder.build();
    }

    /** Read a query, then the factors and queries that lower its scores. */
    private Query demoted() {
        Query query = next();
        float[] factors = new float[number()];
        List<Query> queries = new ArrayList<>(factors.length);
        for (int i = 0; i < factors.length; i++) {
            factors[i] = (float) real();
            queries.add(next());
        }
        return new Demoted(query, queries, factors);
    }

    private static BooleanClause.Occur occur(char sign) {
        return switch (sign) {
            case '+' -> BooleanClause.Occur.MUST;
            case '-' -> BooleanClause.Occur.MUST_NOT;
            case '#' -> BooleanClause.Occur.FILTER;
            default -> BooleanClause.Occur.SHOULD;
        };
    }

    private List<Query> queries() {
        int n = number();
        List<Query> queries = new ArrayList<>(n);
        for (int i = 0; i < n; i++) {
            queries.add(next());
        }
        return queries;
    }

    private Query values() {
        String field = word();
        int n = number();
        List<BytesRef> values = new ArrayList<>(n);
        for (int i = 0; i < n; i++) {
            values.add(new BytesRef(unescaped(word())));
        }
        return new TermInSetQuery(field, values);
    }

    private Query ordinals() {
        String field = word();
        long[] ordinals = new long[number()];
        for (int i = 0; i < ordinals.length; i++) {
            ordinals[i] = integer();
        }
        return LongPoint.newSetQuery(field, ordinals);
    }

    /** Return the next word, which a user may have written. */
    String unescapedWord() {
        return unescaped(word());
    }

    /** Return the next word, which is a number. */
    int number() {
        return Integer.parseInt(word());
    }

    private double real() {
        return Double.parseDouble(word());
    }

    private long integer() {
        return Long.parseLong(word());
    }

    /** Return the next word. */
    String word() {
        int end = text.indexOf(END, at);
        String word = text.substring(at, end);
        at = end + 1;
        return word;
    }

    private static String unescaped(String word) {
        if (word.indexOf('\\') < 0) {
            return word;
        }
        StringBuilder plain = new StringBuilder(word.length());
        for (int i = 0; i < word.length(); i++) {
            char character = word.charAt(i);
            if (character == '\\') {
                i++;
                character = word.charAt(i) == '0' ? (char) END : '\\';
            }
            plain.append(character);
        }
        return plain.toString();
    }
}
