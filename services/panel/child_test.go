package panel_test

func childMain() {}
