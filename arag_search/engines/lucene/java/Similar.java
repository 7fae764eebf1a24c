package arag;

import java.io.IOException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.FuzzyQuery;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.automaton.CompiledAutomaton;

/**
 * The words that are at most so many edits from one, as a FuzzyQuery without scores matches them.
 * Making an automaton costs more than searching with it, and a FuzzyQuery makes several for each
 * field, segment and count of a search: here one is made for a word, and the latest are kept.
 */
final class Similar extends MultiTermQuery {
    private static final int KEPT = 128;
    private static final Map<String, CompiledAutomaton> AUTOMATA =
            Collections.synchronizedMap(
                    new LinkedHashMap<>(KEPT, 0.75f, true) {
                        @Override
                        protected boolean removeEldestEntry(
                                Map.Entry<String, CompiledAutomaton> eldest) {
                            return size() > KEPT;
                        }
                    });

    private final Term term;
    private final int edits;

    Similar(Term term, int edits) {
        super(term.field(), CONSTANT_SCORE_REWRITE);
        this.term = term;
        this.edits = edits;
    }

    @Override
    protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
        return terms(terms, term, edits);
    }

    /** Return those of some terms that are at most so many edits from one. */
    static TermsEnum terms(Terms terms, Term term, int edits) throws IOException {
        String word = term.text();
        return AUTOMATA.computeIfAbsent(
                        edits + word, key -> FuzzyQuery.getFuzzyAutomaton(word, edits, 0, true))
                .getTermsEnum(terms);
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String field) {
        return term + "~" + edits;
    }

    @Override
    public boolean equals(Object other) {
        return super.equals(other)
                && edits == ((Similar) other).edits
                && term.equals(((Similar) other).term);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * super.hashCode() + edits) + term.hashCode();
    }
}
