from orders import Order, customers, parse_order, read_orders, totals
from report import render

DAY = [Order("ada", "tea", 3.5), Order("bob", "cake", 4.0), Order("ada", "cake", 4.5)]


def test_an_order_is_parsed():
    assert parse_order("ada, tea, 3.50\n") == Order("ada", "tea", 3.5)


def test_orders_are_read_from_a_file(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("ada,tea,3.5\n\nbob,cake,4\n", encoding="utf-8")
    assert [order.customer for order in read_orders(path)] == ["ada", "bob"]


def test_customers_come_once_in_order_with_their_totals():
    assert customers(DAY) == ["ada", "bob"]
    assert totals(DAY) == {"ada": 8.0, "bob": 4.0}


def test_the_report_names_everybody():
    assert render(DAY).splitlines()[1:] == ["ada              8.00", "bob              4.00"]
