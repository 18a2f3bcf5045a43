"""The one catalogue of texts: around the drawn table and of `domino play`, in the languages spoken here."""

from domino_env.render.line import Snapshot

# The one catalogue of texts, key: (English, Russian). Gaps in braces are the same in both; a test compares them.
_TEXTS: dict[str, tuple[str, str]] = {
    # around the drawn table
    "deal": ("deal {}", "раздача {}"),
    "score": ("score", "счёт"),
    "pair": ("seats {}", "места {}"),
    "leads": ("leads", "заход"),
    "pass": ("pass", "пас"),
    "no": ("no {}", "нет {}"),
    "drew": ("drew", "взял"),
    "declined": ("declined", "не взял"),
    "turned": ("turned", "открыл"),
    "laid": ("laid {}", "выложено {}"),
    "goes_on": ("goes on", "ходит ещё"),
    "only_left": ("left end only", "только слева"),
    "only_right": ("right end only", "только справа"),
    "to_left": ("left", "слева"),
    "to_right": ("right", "справа"),
    "stock": ("stock {}", "базар {}"),
    "out_of_play": ("out of play {}", "вне игры {}"),
    "down": ("face down", "закрыта"),
    "down_seen": ("down, seen by all", "её видели все"),
    "table": ("domino table", "стол домино"),
    "turn": ("to move", "ходит"),
    "moves": ("last moves", "ходы"),
    "out": ("{} is out", "{} выходит"),
    "block": ("blocked by {}", "{} закрывает: бой"),
    "guard": ("stopped", "остановлено"),
    "pair_wins": ("{} win", "{}: выигрыш"),
    "seat_wins": ("{} wins", "{}: выигрыш"),
    "nobody": ("nobody wins", "ничья"),
    "points": ("points {}", "очки {}"),
    "left": ("pips left {}", "осталось {}"),
    # the words of the game, each with what it means
    "term_tile": ("tile: one of the set", "косточка: одна из набора"),
    "term_suit": ("suit: the pips of one half of a tile", "масть: очки одной половинки косточки"),
    "term_double": ("double: a tile with the same suit twice", "дубль: косточка с одинаковыми половинками"),
    "term_line": ("line: the tiles as they lie", "игровая линия: косточки, как они лежат"),
    "term_end": (
        "end: an open half of the line, L on the left, R on the right",
        "конец: открытый край линии, L слева, R справа",
    ),
    "term_move": ("move: what a seat does in its turn", "ход: то, что игрок делает в свою очередь"),
    "term_lead": ("lead: the first move of a deal; its player is the leader", "заход: первый ход раздачи"),
    "term_pass": ("pass: a seat has nothing that fits", "пас: у игрока нет подходящей косточки"),
    "term_stop": ("stop: a seat ends its turn after laying", "стоп: игрок кончает ход, выложив сколько хотел"),
    "term_out": (
        "out: a seat lays its last tile and the deal ends",
        "выход: игрок кладёт последнюю косточку, раздача кончена",
    ),
    "term_block": (
        "block: nobody can lay any more and the deal ends",
        "бой: класть больше нечего никому, раздача кончена",
    ),
    "term_deal": (
        "deal: a game from the shuffle to an out or a block",
        "раздача: игра от набора косточек до выхода или боя",
    ),
    "term_four": ("four: four deals, each seat leads one", "четвёрка: четыре раздачи, каждый заходит по разу"),
    "term_match": ("match: a number of fours", "партия: одна или несколько четвёрок"),
    "term_pair": ("pair: two partners who face each other", "пара: два партнёра друг против друга"),
    "term_stock": ("stock: the tiles that nobody was dealt", "базар: косточки, которые никому не достались"),
    "term_row": ("row: the tiles that lie face down before a seat", "ряд: косточки, лежащие перед игроком закрытыми"),
    "term_turn": (
        "turn: to turn up the rightmost tile of one's row",
        "открыть: перевернуть правую косточку своего ряда",
    ),
    # what is told as a game goes on (domino play)
    "you": ("you", "вы"),
    "person": ("person", "человек"),
    "intro": (
        "{rules}: you are {seat}; --seed {seed} deals the same again",
        "{rules}: вы {seat}; с --seed {seed} раздачи повторятся",
    ),
    "sits": ("  {seat}  {name}", "  {seat}  {name}"),
    "partner": ("{name}, your partner", "{name}, ваш партнёр"),
    "opponent": ("{name}, an opponent", "{name}, соперник"),
    "begin": (
        "type a number or a move; help tells what else",
        "введите номер или ход; что ещё можно, скажет help (помощь)",
    ),
    "deal_begins": ("deal {number}: {seat} leads", "раздача {number}: заходит {seat}"),
    "deal_of_begins": (
        "deal {number} of {deals}, four {four}: {seat} leads",
        "раздача {number} из {deals}, четвёрка {four}: заходит {seat}",
    ),
    "deal_to_begins": (
        "deal {number}, match to {points}: {seat} leads",
        "раздача {number}, партия до {points}: заходит {seat}",
    ),
    "told": ("{who}: {move}", "{who}: {move}"),
    "told_ends": ("{who}: {move}, ends {left} and {right}", "{who}: {move}, концы {left} и {right}"),
    "only": ("{told} (the only move)", "{told} (единственный ход)"),
    "lead": ("lead {tile}", "заход {tile}"),
    "on_left": ("{tile} on the left", "{tile} слева"),
    "on_right": ("{tile} on the right", "{tile} справа"),
    "stop": ("stop", "стоп"),
    "decline": ("draws nothing", "с базара не берёт"),
    "turned_fits": ("turned {tile}, it fits", "открыта {tile}, подходит"),
    "turned_back": (
        "turned {tile}, it does not fit and goes back on the left",
        "открыта {tile}, не подходит и ложится слева",
    ),
    "drawn": ("draws one from the stock, {left} left", "берёт с базара, осталось {left}"),
    "opened": ("open now: {tiles}", "теперь открыты: {tiles}"),
    "your_move": ("your move: ", "ваш ход: "),
    "offered": ("{number}) {move}", "{number}) {move}"),
    "move_pass": ("pass", "пас"),
    "move_stop": ("stop", "стоп"),
    "move_decline": ("decline", "отказ"),
    "move_turn": ("turn", "открыть"),
    "move_draw": ("draw", "взять"),
    "not_allowed": (
        "{given!r} is not allowed; allowed: {moves}, or hint, help, words, table, quit",
        "{given!r} нельзя; можно: {moves} или подсказка, помощь, слова, стол, выход",
    ),
    "which_end": ("{tile} fits both ends: {moves}", "{tile} подходит с обеих сторон: {moves}"),
    "no_undo": ("a laid tile stays: this is a game, nothing is taken back", "ход назад не берут: это игра"),
    "hint": ("{name} would play {move}", "{name} ходит так: {move}"),
    "help": (
        "Moves: the number of an offered move, or its text. 3-4L lays 3-4 on the left,\n"
        "3-4R on the right, 3-4 where it fits. pass; stop ends a turn; turn turns up\n"
        "your rightmost tile; draw takes one from the stock, decline does not.\n"
        "Else: hint, table (draw it again), words (of the game), help, quit.\n"
        "Nothing is taken back.",
        "Ходы: номер предложенного хода или его запись. 3-4L (3-4Л) кладёт 3-4 слева,\n"
        "3-4R (3-4П) справа, 3-4 туда, куда подходит. пас; стоп кончает ход; открыть\n"
        "переворачивает правую косточку ряда; взять берёт с базара, отказ не берёт.\n"
        "Ещё: подсказка, стол (показать снова), слова (игры), помощь, выход.\n"
        "Ходов назад не берут.",
    ),
    "help_judge": (
        "The judge is at the table: pass though you could lay, lay a tile of yours that\n"
        "does not match, or say block where there is none, and it is judged.",
        "За столом судья: можно спасовать с подходящей косточкой, положить неподходящую\n"
        "или объявить бой, которого нет (бой), и он рассудит.",
    ),
    # what may be typed; the English words are understood in every language
    "type_pass": ("pass stop decline", "пас стоп отказ"),
    "type_turn": ("turn", "открыть перевернуть"),
    "type_draw": ("draw", "взять базар"),
    "type_block": ("block", "бой рыба"),
    "type_left": ("l", "л"),
    "type_right": ("r", "п"),
    "type_hint": ("hint h", "подсказка"),
    "type_help": ("help ?", "помощь"),
    "type_words": ("words", "слова"),
    "type_table": ("table", "стол"),
    "type_undo": ("undo back", "отмена назад"),
    "type_quit": ("quit q exit", "выход"),
    # what the judge says
    "verdict": ("judge, {clause}: {offence}: {price}", "судья, {clause}: {offence}: {price}"),
    "offence_wrong_pass": ("a pass with a tile that fits", "пас с подходящей косточкой"),
    "offence_misfit_at_once": ("a tile that does not match", "неподходящая косточка"),
    "offence_false_block": ("a block that is none", "ложный бой"),
    "price_warning": ("warning {count}", "замечание {count}"),
    "price_fine": ("{fine} to the opponents", "{fine} соперникам"),
    "price_lost": ("the deal is lost", "раздача проиграна"),
    "price_removed": ("the pair is out", "пара снята"),
    "judged": ("by the judge: {points}", "с учётом судьи: {points}"),
    # how a game ends
    "sums": ("after deal {number}: {sums}", "после раздачи {number}: {sums}"),
    "sum": ("{side}: {sum}", "{side}: {sum}"),
    "match_won": ("the match is over, {won}: {sums}", "партия окончена, {won}: {sums}"),
    "match_tied": ("the match is over, a tie: {sums}", "партия окончена, ничья: {sums}"),
    "deal_text": ("the deal: {text}", "запись раздачи: {text}"),
    "left_game": ("you leave; whole deals played: {deals}", "вы вышли; сыграно раздач до конца: {deals}"),
    "input_ended": (
        "the input has ended; whole deals played: {deals}",
        "ввод кончился; сыграно раздач до конца: {deals}",
    ),
    "recorded": ("record: {path}, whole deals in it: {deals}", "запись: {path}, раздач в ней: {deals}"),
    # what cannot be played
    "bad_seat": (
        "--as {given!r}: the seats of {rules} are {first} to {last}",
        "--as {given!r}: в {rules} места от {first} до {last}",
    ),
    "bad_partner": (
        "--partner {given!r}: in {rules} each seat plays for itself; name --opponents only",
        "--partner {given!r}: в {rules} каждый играет за себя; назовите только --opponents",
    ),
    "bad_fours": (
        "--fours {given}: fours are counted in a match; add --episode match",
        "--fours {given}: четвёрки считают в партии; добавьте --episode match",
    ),
    "bad_name": ("--name {given!r}: a player needs a name", "--name {given!r}: игроку нужно имя"),
    "cannot_play": (
        "{option} {name!r} cannot play {rules}: {why}",
        "{option} {name!r} не умеет играть в {rules}: {why}",
    ),
    "failed": ("{seat}, agent {name}, failed: {why}", "{seat}, игрок {name}, отказал: {why}"),
    "answered": ("it answered {given}, legal are {moves}", "ответ {given}, а можно {moves}"),
}
_LANGUAGES = {lang: {key: texts[i] for key, texts in _TEXTS.items()} for i, lang in enumerate(("en", "ru"))}
_ENGLISH = _LANGUAGES["en"]

Words = dict[str, str]


def words_of(lang: str) -> Words:
    """The phrases of a language, some with one gap; ValueError where it is not spoken here."""
    if lang not in _LANGUAGES:
        raise ValueError(f"lang must be one of {', '.join(_LANGUAGES)}, got {lang!r}")
    return _LANGUAGES[lang]


def side_names(snapshot: Snapshot, words: Words = _ENGLISH) -> list[str]:
    """Names of those who score: "seats 0+2" and "seats 1+3" in pairs, else every seat."""
    seats = range(snapshot["seats"])
    if snapshot["pairs"]:
        return [words["pair"].format("+".join(str(seat) for seat in seats[side::2])) for side in (0, 1)]
    return [f"seat_{seat}" for seat in seats]


def result_of(snapshot: Snapshot, words: Words = _ENGLISH) -> list[str]:
    """Four short lines on how the deal ended, who won, the points and the pips left; none while it goes on."""
    deal = snapshot["deal"]
    if not snapshot["over"] or deal is None:
        return []
    winner = words["nobody"]
    if deal["winner"] is not None:
        wins = words["pair_wins" if snapshot["pairs"] else "seat_wins"]
        winner = wins.format(side_names(snapshot, words)[deal["winner"]])
    return [
        words[deal["outcome"]].format(f"seat_{deal['by']}"),
        winner,
        words["points"].format(" : ".join(str(points) for points in deal["points"])),
        words["left"].format(" ".join(str(pips) for pips in deal["pips_left"])),
    ]
