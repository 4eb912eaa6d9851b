"""List the names the tokeniser knows: LaTeX commands, HTML elements and entities.

All lower-case ASCII, because the scanner compares lower-cased names. The lists belong to the
normaliser's version: adding a name changes tokens.
"""

from __future__ import annotations

from html.entities import name2codepoint
from typing import Final


def _names(listing: str) -> frozenset[str]:
    return frozenset(listing.split())


LATEX_SKIP: Final = _names(
    """
    quad qquad left right middle
    big bigl bigr bigm bigg biggl biggr biggm
    displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits displaylimits
    thinspace enspace medspace thickspace negthinspace negmedspace negthickspace enskip
    hspace vspace hskip vskip hfill vfill hfil vfil smallskip medskip bigskip
    noindent indent nonumber notag allowbreak nobreak linebreak nolinebreak pagebreak nopagebreak
    newline newpage clearpage phantom hphantom vphantom strut mathstrut
    """
)
"""Commands that only arrange space or size: command and backslash are one separator."""

LATEX_WORDS: Final = _names(
    """
    nabla name natural nbsp ncong ne nearrow neg negated neq newcommand newcolumntype newcounter
    newenvironment newfloat newif newlength newtheorem nexists nexpr ng ngeq ngeqq ngeqslant ngtr
    nicefrac nleftarrow nleftrightarrow nleq nleqq nleqslant nobreakspace nocite node nodata
    nofiles nonfrenchspacing nonstopmode nonscript nopagecolor norm normalcolor normalem
    normalfont normalmarginpar normalsize not note notin notni nparallel nprec npreceq
    nrightarrow nshortmid nshortparallel nsim nsubset nsubseteq nsubseteqq nsucc nsucceq nsupset
    nsupseteq nsupseteqq ntriangleleft ntrianglelefteq ntriangleright ntrianglerighteq nu num
    number numberline numberwithin numprint numrange nvdash nwarrow

    tabcolsep tabitem tableofcontents tabularnewline tag tan tanh tau tbinom tcbset tcf tcite
    tensor text textacutedbl textasciicircum textasciimacron textasciitilde textasteriskcentered
    textbackslash textbar textbardbl textbf textbraceleft textbraceright textbullet textcelsius
    textcite textcolor textcompwordmark textcopyright textcyr textdagger textdegree textdollar
    textdoublequote textellipsis textemdash textendash texteuro textexclamdown textfloatsep
    textfractionsolidus textgreater textgreek textheight textit textlatin textless textmd textmu
    textmultiply textnormal textnumero textohm textonehalf textordfeminine textordmasculine
    textparagraph textperiodcentered textpertenthousand textperthousand textpm textquestiondown
    textquotedbl textquotedblleft textquotedblright textquoteleft textquoteright textquotesingle
    textregistered textrm textsc textsection textsf textsl textsterling textstyles textsubscript
    textsuperscript textsw texttildelow texttimes texttrademark texttt textulc textunderscore textup
    textvisiblespace textwidth tfrac tg thanks thebibliography thechapter theenumi theequation
    thefigure thefootnote theorem theoremstyle thepage therefore thesection thesubsection thetable
    theta thickapprox thicklines thicksim thinlines thispagestyle thm tikz tikzset tikzstyle tilde
    times tiny title titleformat titlepage titlespacing to today tolerance top topmargin toprule
    topsep topskip tr trace transpose triangle triangledown triangleleft trianglelefteq triangleq
    triangleright trianglerighteq trig tt ttfamily twocolumn twoheadleftarrow twoheadrightarrow
    typein typeout

    raggedbottom raggedleft raggedright raise raisebox rangle rank rbrace rbrack rceil re readlist
    ref refname refstepcounter relax renewcommand renewenvironment require requirepackage
    resizebox restriction restrictedto reversemarginpar rfloor rfoot rgroup rhd rhead rho
    rightarrow rightarrowtail righteqarrow rightharpoondown rightharpoonup rightleftarrows
    rightleftharpoons rightline rightmargin rightrightarrows rightskip rightsquigarrow
    rightthreetimes risingdotseq rlap rm rmdefault rmfamily rmoustache roman romannumeral root
    rotatebox rowcolor rowcolors rtimes rule rvert
    """
)
"""Commands beginning with n, t or r, which a literal ``\\n``, ``\\t`` or ``\\r`` must not eat.

Short ones that are far more often an escape before a word stay out: ``\\ni`` (a line break, then
"I"), ``\\the`` (a tab, then "He"), ``\\nor``, ``\\nless``, ``\\nmid``.
"""

HTML_ELEMENTS: Final = _names(
    """
    a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink
    blockquote body br button canvas caption center cite code col colgroup command data datalist dd
    del details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame
    frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd keygen label
    legend li link main map mark marquee menu menuitem meta meter nav nobr noframes noscript object
    ol optgroup option output p param picture plaintext pre progress q rb rp rt rtc ruby s samp
    script search section select slot small source span strike strong style sub summary sup table
    tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp
    """
)
"""Element names of HTML, obsolete ones too; elements of SVG are text to us."""

MATHML_ELEMENTS: Final = _names(
    """
    annotation annotation-xml maction maligngroup malignmark math menclose merror mfenced mfrac
    mglyph mi mlabeledtr mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace
    msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics
    """
)
"""Element names of MathML's presentation."""

HTML_TAGS: Final[dict[str, int]] = {
    **dict.fromkeys(HTML_ELEMENTS | MATHML_ELEMENTS, 1),
    "wbr": 2,
    **dict.fromkeys(("c", "v", "lang"), 3),
}
"""Element name -> 1 (its tags separate), 2 (they are transparent) or 3 (they belong to a cue)."""

ATTRIBUTES: Final[dict[str, int]] = {
    **dict.fromkeys(_names("alt alttext title aria-label"), 1),
    **dict.fromkeys(_names("class d href points sizes src srcset style transform xmlns"), 2),
}
"""Attribute name -> 1 (what it says is text) or 2 (it is none, however long)."""

ASIDES: Final[dict[str, int]] = {
    **dict.fromkeys(
        _names(
            """
            applause breath chuckle chuckles cough coughing coughs crosstalk inaudible indistinct
            laugh laughing laughs laughter noise pause sigh sighs silence unintelligible
            """
        ),
        1,
    ),
    **dict.fromkeys(_names("critical debug error fatal info notice severe trace warn warning"), 2),
    **dict.fromkeys(_names("and how is it of that the they this to what you"), 3),
}
"""Name -> 1 (a sound, in brackets), 2 (the level of a log) or 3 (English is spoken around it)."""


def _entities() -> dict[str, int]:
    found = {name.lower(): code for name, code in name2codepoint.items()}
    found.update((name, code) for name, code in name2codepoint.items() if name.islower())
    found["apos"] = 0x27
    return found


ENTITIES: Final[dict[str, int]] = _entities()
"""Lower-cased HTML 4 entity name, and ``apos`` -> code point; of a case pair the lower-case one."""
